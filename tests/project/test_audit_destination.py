"""The setting AUDIT_STREAM: what is accepted, and what the server says about the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from project import audit_stream
from project.audit_stream import Destination, check_tls_files, read_destination
from project.env import BadSetting
from tests.project.conftest import Start
from tests.syslogging import make_certificate


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("syslog+tcp://logs.example:601", ("syslog+tcp", "logs.example", 601, "")),
        ("syslog+tls://logs.example:6514", ("syslog+tls", "logs.example", 6514, "")),
        ("syslog+tcp://[::1]:601", ("syslog+tcp", "::1", 601, "")),
        ("file:///var/log/commonhold", ("file", "", 0, "/var/log/commonhold")),
        ("s3://acme-audit", ("s3", "acme-audit", 0, "")),
        ("s3://acme-audit/commonhold/eu", ("s3", "acme-audit", 0, "/commonhold/eu")),
    ],
)
def test_destination__complete_address__is_accepted(
    url: str, expected: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDIT_STREAM", url)
    assert read_destination() == Destination(url, *expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "url",
    [
        "logs.example:601",
        "syslog://logs.example:601",
        "syslog+tcp://logs.example",
        "syslog+tcp://logs.example:port",
        "syslog+tcp://:601",
        "syslog+tcp://me:secret@logs.example:601",
        "syslog+tcp://logs.example:601/path",
        "syslog+tls://logs.example:6514?verify=no",
        "syslog+tcp://[::1:601",
        "file://var/log",
        "file:///",
        "https://logs.example",
        "s3:///prefix",
        "s3://bucket:9000/prefix",
        "s3://key:secret@bucket/prefix",
    ],
)
def test_destination__other_address__is_refused_without_quoting_it(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDIT_STREAM", url)
    with pytest.raises(BadSetting, match=r"^AUDIT_STREAM must be syslog\+tls://") as error:
        read_destination()
    assert "secret" not in str(error.value)


def test_destination__not_set__is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AUDIT_STREAM", raising=False)
    assert read_destination() is None


@pytest.mark.parametrize("url", ["", "syslog+tcp://logs.example:601"])
@pytest.mark.parametrize("name", ["AUDIT_STREAM_TLS_CA", "AUDIT_STREAM_TLS_CERT"])
def test_destination__files_of_tls_without_tls__are_refused(
    name: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDIT_STREAM", url)
    monkeypatch.setenv(name, "/etc/ssl/ca.pem")
    with pytest.raises(BadSetting, match="need an AUDIT_STREAM that begins with"):
        read_destination()


def test_destination__files_of_tls__are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUDIT_STREAM", "syslog+tls://logs.example:6514")
    monkeypatch.setenv("AUDIT_STREAM_TLS_CA", "/ca.pem")
    monkeypatch.setenv("AUDIT_STREAM_TLS_CERT", "/cert.pem")
    found = read_destination()
    assert found is not None
    assert (found.tls_ca, found.tls_cert) == ("/ca.pem", "/cert.pem")


def test_destination__endpoint_of_s3__is_part_of_its_identity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AUDIT_STREAM", "s3://audit/x")
    monkeypatch.setenv("AUDIT_STREAM_S3_ENDPOINT", "https://minio.example:9000")
    found = read_destination()
    assert found is not None
    assert found.endpoint == "https://minio.example:9000"
    assert found.url == "s3://audit/x at https://minio.example:9000"


@pytest.mark.parametrize(
    ("url", "endpoint", "error"),
    [
        ("", "https://minio.example", "needs an AUDIT_STREAM that begins with s3"),
        ("file:///x", "https://minio.example", "needs an AUDIT_STREAM that begins with s3"),
        ("s3://audit", "minio.example:9000", "must be an http:// or https:// URL"),
        ("s3://audit", "https://key:secret@minio.example", "must be an http:// or https:// URL"),
    ],
)
def test_destination__endpoint_that_does_not_fit__is_refused(
    url: str, endpoint: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDIT_STREAM", url)
    monkeypatch.setenv("AUDIT_STREAM_S3_ENDPOINT", endpoint)
    with pytest.raises(BadSetting, match=error):
        read_destination()


def test_destination__s3_without_its_packages__error_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AUDIT_STREAM", "s3://audit")
    monkeypatch.setattr(audit_stream, "find_spec", lambda _: None)
    with pytest.raises(BadSetting, match=r"pip install --require-hashes -r requirements-s3\.txt$"):
        read_destination()


def over_tls(**files: str) -> Destination:
    return Destination("syslog+tls://logs:6514", "syslog+tls", "logs", 6514, "", **files)


def test_check_tls_files__usable_or_not_set__are_accepted(tmp_path: Path) -> None:
    certificate = str(make_certificate(tmp_path))
    check_tls_files(None)
    check_tls_files(over_tls())
    check_tls_files(over_tls(tls_ca=certificate, tls_cert=certificate))


@pytest.mark.parametrize("name", ["ca", "cert"])
def test_check_tls_files__unusable__is_one_sentence(name: str, tmp_path: Path) -> None:
    path = tmp_path / "file.pem"
    setting = f"{path}, which AUDIT_STREAM_TLS_{name.upper()} names"
    destination = over_tls(**{f"tls_{name}": str(path)})
    with pytest.raises(BadSetting) as missing:
        check_tls_files(destination)
    assert str(missing.value) == f"Cannot read {setting}: No such file or directory"
    path.write_text("text")
    with pytest.raises(BadSetting) as malformed:
        check_tls_files(destination)
    assert str(malformed.value).startswith(f"{setting}, must contain ")


@pytest.mark.parametrize("command", [("manage.py", "serve"), ("-m", "project.processes", "worker")])
def test_start__file_of_tls_is_missing__is_refused(command: tuple[str, ...], start: Start) -> None:
    process = start(
        *command, AUDIT_STREAM="syslog+tls://logs.example:6514", AUDIT_STREAM_TLS_CA="/missing.pem"
    )
    assert process.wait() == 1
    expected = (
        "Cannot read /missing.pem, which AUDIT_STREAM_TLS_CA names: No such file or directory"
    )
    assert process.output().splitlines() == [expected]
