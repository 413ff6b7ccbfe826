"""manage.py create_token."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from state_admin.domain.access import Role
from state_admin.models import ApiToken, Workspace
from state_admin.services.actors import actor_of_token
from tests.builders import call

pytestmark = pytest.mark.django_db


def create(*arguments: str) -> str:
    out = io.StringIO()
    call_command("create_token", *arguments, stdout=out)
    return out.getvalue().strip()


def test_create_token__new_workspace__is_created_and_the_token_works() -> None:
    secret = create("--workspace", "fresh", "--role", "editor", "--name", "bot")
    assert secret.startswith("ch_")
    assert "\n" not in secret
    me = call(secret, "GET", "/me").json()
    assert (me["workspace"], me["role"], me["actor"]) == ("fresh", "editor", "bot")


def test_create_token__secret__is_stored_only_as_a_digest() -> None:
    secret = create("--role", "viewer", "--name", "bot")
    token = ApiToken.objects.get()
    assert secret.rpartition("_")[2] not in str(vars(token))


def test_create_token__limits__restrict_the_actor() -> None:
    secret = create(
        *("--role", "editor", "--name", "bot", "--namespace", "team_*"),
        *("--thread-prefix", "a-", "--expires-in-days", "1"),
    )
    actor = actor_of_token(secret)
    assert actor is not None
    assert actor.role is Role.EDITOR
    assert actor.sees_namespace("team_x")
    assert not actor.sees_namespace("other")
    assert not actor.sees_thread("b-1")


def test_create_token__invalid_workspace_name__is_one_sentence_and_nothing_is_created() -> None:
    with pytest.raises(CommandError, match="invalid workspace name"):
        create("--workspace", "a b", "--role", "viewer", "--name", "bot")
    assert not Workspace.objects.exists()


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--expires-in-days", "0", "valid for at least 1 second and at most 10 years"),
        ("--expires-in-days", "-1", "valid for at least 1 second and at most 10 years"),
        ("--expires-in-days", "99999999", "valid for at least 1 second and at most 10 years"),
        ("--rate-per-minute", "0", "from 1 to 2,147,483,647 requests per minute"),
        ("--rate-per-minute", "99999999999", "from 1 to 2,147,483,647 requests per minute"),
        ("--name", "n" * 129, "at most 128 characters"),
        ("--name", " ", "must have a name"),
    ],
)
def test_create_token__value_outside_the_limits__is_refused(
    option: str, value: str, says: str
) -> None:
    with pytest.raises(CommandError, match=says):
        create("--role", "viewer", "--name", "bot", option, value)
    assert not ApiToken.objects.exists()


def test_create_token__new_workspace__is_announced_once(capsys: pytest.CaptureFixture[str]) -> None:
    for slug in ("default", "defualt", "defualt"):
        create("--workspace", slug, "--role", "viewer", "--name", "bot")
    assert capsys.readouterr().err == (
        "Created the workspace default.\nCreated the workspace defualt, because it did not exist. Other workspaces: default.\n"
    )


def test_create_token__new_workspace_of_many__names_some(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Workspace.objects.bulk_create(Workspace(slug=f"w{number}") for number in range(6))
    create("--workspace", "new", "--role", "viewer", "--name", "bot")
    assert capsys.readouterr().err.endswith("Other workspaces: w0, w1, w2, w3, w4, ….\n")
