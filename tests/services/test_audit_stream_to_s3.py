"""The audit stream to an S3-compatible server."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import botocore.session
import pytest
from django.db.models.functions import Now
from moto.server import ThreadedMotoServer

from project.audit_stream import Destination
from state_admin import audit_sinks
from state_admin.models import AuditRow, AuditStream
from state_admin.services import audit_stream
from state_admin.services.audit_stream import stream_audit
from tests.builders import Person, make_namespace, put

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    one = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    one.start()
    host, port = one.get_host_and_port()
    yield f"http://{host}:{port}"
    one.stop()


@pytest.fixture
def destination(server: str, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Destination:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "an-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-key")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    audit_sinks._s3_client.cache_clear()
    settings.AUDIT_STREAM = Destination("s3", "s3", "audit", 0, "/of/acme", endpoint=server)
    return settings.AUDIT_STREAM


@pytest.fixture
def bucket(destination: Destination) -> Iterator[Callable[[], list[tuple[str, bytes]]]]:
    """The bucket of the destination. Returns its objects, in the order of their keys."""
    client = botocore.session.get_session().create_client("s3", endpoint_url=destination.endpoint)
    place = {"LocationConstraint": "eu-central-1"}
    client.create_bucket(
        Bucket="audit", CreateBucketConfiguration=place, ObjectLockEnabledForBucket=True
    )

    def read() -> list[tuple[str, bytes]]:
        keys = [each["Key"] for each in client.list_objects_v2(Bucket="audit").get("Contents", [])]
        return [
            (key, client.get_object(Bucket="audit", Key=key)["Body"].read()) for key in sorted(keys)
        ]

    yield read
    for version in client.list_object_versions(Bucket="audit").get("Versions", []):
        client.delete_object(Bucket="audit", Key=version["Key"], VersionId=version["VersionId"])
    client.delete_bucket(Bucket="audit")


def ids(objects: list[tuple[str, bytes]]) -> list[int]:
    return [json.loads(line)["id"] for _, body in objects for line in body.splitlines()]


def stored() -> list[int]:
    return list(AuditRow.objects.order_by("pk").values_list("pk", flat=True))


def test_s3__rows__are_objects_in_the_order_of_their_keys(
    bucket: Callable[[], list[tuple[str, bytes]]], alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_stream, "MOST_ROWS", 2)
    make_namespace(alice.actor, "notes")
    for number in range(5):
        put(alice.actor, "notes", f"k{number}", 1)
    assert stream_audit() == {"sent": len(stored()), "failed": 0}
    objects = bucket()
    assert ids(objects) == stored()
    assert len(objects) == -(-len(stored()) // 2)
    assert all(key.startswith("of/acme/20") for key, _ in objects)


def test_s3__batch_that_is_sent_again__is_the_same_object(
    bucket: Callable[[], list[tuple[str, bytes]]], alice: Person
) -> None:
    make_namespace(alice.actor, "notes")
    stream_audit()
    AuditStream.objects.update(position=0)  # as if the worker had died before it stored it
    stream_audit()
    assert ids(bucket()) == stored()


def test_s3__bucket_that_does_not_exist__is_reported_and_tried_again(
    destination: Destination, alice: Person, request: pytest.FixtureRequest
) -> None:
    make_namespace(alice.actor, "notes")
    assert stream_audit() == {"sent": 0, "failed": 1}
    assert AuditStream.objects.get().last_error == "S3: NoSuchBucket"
    bucket = request.getfixturevalue("bucket")
    AuditStream.objects.update(next_attempt_at=Now())
    assert stream_audit()["failed"] == 0
    assert ids(bucket()) == stored()


@pytest.mark.usefixtures("destination")
def test_s3__without_credentials__is_reported(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor, "notes")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    assert stream_audit()["failed"] == 1
    assert AuditStream.objects.get().last_error == "S3: Unable to locate credentials"


def test_s3__server_that_is_gone__is_reported(
    destination: Destination, alice: Person, settings: Any
) -> None:
    make_namespace(alice.actor, "notes")
    settings.AUDIT_STREAM = Destination("s3", "s3", "audit", 0, "", endpoint="http://127.0.0.1:1")
    assert stream_audit()["failed"] == 1
    error = AuditStream.objects.get().last_error
    assert error.startswith("S3: Could not connect to the endpoint URL")
    assert "a-key" not in error
