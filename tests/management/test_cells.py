"""manage.py cells, and the tokens of a cell."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from state_admin.domain.access import Role
from state_admin.models import ApiToken, Workspace
from state_admin.services import tokens
from state_admin.services.actors import actor_of_token
from tests.builders import Person, call

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def cell(alice: Person, settings: Any) -> None:
    """Alice's first token is older than the cell."""
    settings.CELL = "eu1"
    settings.SITE_URL = "https://eu1.state.example:8443"


def cells(*arguments: str) -> str:
    out = io.StringIO()
    call_command("cells", *arguments, stdout=out)
    return out.getvalue()


def make(person: Person) -> tuple[ApiToken, str]:
    return tokens.create_token(actor=person.actor, name="ci", role=Role.EDITOR)


def move(person: Person, cell: str) -> None:
    Workspace.objects.filter(pk=person.workspace.pk).update(moved_to=cell)


def routes() -> list[str]:
    """The routes of tokens, without that of the cell."""
    lines = cells().partition("# hosts.map")[0].splitlines()
    assert lines[:2] == ["# tokens.map", "ch_eu1- eu1"]
    return lines[2:]


def test_token__of_a_cell__begins_with_its_name_and_is_valid(alice: Person) -> None:
    token, secret = make(alice)
    assert secret.startswith("ch_eu1-")
    assert secret.startswith(token.beginning)
    assert len(token.lookup) == len("eu1-") + 12
    found = actor_of_token(secret)
    assert found is not None
    assert found.id == str(token.pk)
    _, rotated = tokens.rotate_token(
        actor=alice.actor, token_id=token.pk, overlap=tokens.MOST_OVERLAP
    )
    assert rotated.startswith("ch_eu1-")


def test_token__older_than_the_cell__stays_valid(alice: Person) -> None:
    assert alice.token.startswith("ch_")
    assert "-" not in alice.token
    assert actor_of_token(alice.token) is not None


def test_token__longest_name__is_stored(alice: Person, settings: Any) -> None:
    settings.CELL = "a2345678"
    _, secret = make(alice)
    assert secret.startswith("ch_a2345678-")
    assert actor_of_token(secret) is not None


def test_token__of_another_cell__is_refused_like_any_unknown_one(
    alice: Person, settings: Any
) -> None:
    _, secret = make(alice)
    elsewhere = secret.replace("ch_eu1-", "ch_us1-")
    assert actor_of_token(elsewhere) is None
    unknown = "ch_" + "0" * 12 + "_" + "0" * 64
    answers = [call(token, "GET", "/me") for token in (elsewhere, unknown)]
    assert [each.status_code for each in answers] == [401, 401]
    first, second = ({**each.json(), "instance": ""} for each in answers)
    assert first == second


def test_cells__no_workspace_was_moved__has_the_cell_and_older_tokens(alice: Person) -> None:
    make(alice)
    assert routes() == [f"{alice.token.rpartition('_')[0]}_ eu1"]
    assert cells().endswith("# hosts.map\neu1.state.example eu1\n")


def test_cells__workspace_moved_away__names_the_other_cell_for_all_its_tokens(
    alice: Person,
) -> None:
    token, _ = make(alice)
    before = routes()
    move(alice, "us1")
    mine = ApiToken.objects.filter(workspace=alice.workspace).values_list("lookup", flat=True)
    assert f"ch_{token.lookup}_ us1" in routes()
    assert {f"ch_{lookup}_ us1" for lookup in mine} <= set(routes())
    # Those of other workspaces stay.
    assert {line for line in before if line.split("_")[1] not in mine} <= set(routes())


def test_cells__workspace_moved_here__names_this_cell_for_tokens_of_another_one(
    alice: Person,
) -> None:
    token, _ = make(alice)
    ApiToken.objects.filter(workspace=alice.workspace).exclude(pk=token.pk).delete()
    _, theirs = make(alice)
    ApiToken.objects.filter(lookup=theirs.split("_")[1]).update(lookup="us1-0123456789ab")
    copied = [line for line in routes() if "us1" in line]
    assert copied == []  # only a copy of the workspace so far
    move(alice, "eu1")
    assert "ch_us1-0123456789ab_ eu1" in routes()
    assert f"ch_{token.lookup}_ eu1" not in routes()


def test_cells__revoked_token__is_not_listed(alice: Person) -> None:
    token, _ = make(alice)
    move(alice, "us1")
    tokens.revoke_token(actor=alice.actor, token_id=token.pk)
    assert f"ch_{token.lookup}_ us1" not in routes()


def test_cells__single_installation__is_refused(settings: Any, tmp_path: Path) -> None:
    settings.CELL = ""
    with pytest.raises(CommandError, match="CELL is not set"):
        cells("--output", str(tmp_path))
    assert list(tmp_path.iterdir()) == []


# The maps of several cells -------------------------------------------------------------------


@pytest.fixture
def no_tokens() -> None:
    """All cells of a test have one database."""
    ApiToken.objects.all().delete()


def write(folder: Path, settings: Any, cell: str) -> str:
    settings.CELL, settings.SITE_URL = cell, f"https://{cell}.state.example"
    return cells("--output", str(folder))


def read(folder: Path, name: str) -> dict[str, str]:
    return dict(line.split() for line in (folder / f"{name}.map").read_text().splitlines())


def test_output__several_cells__are_in_one_map(
    no_tokens: None, settings: Any, tmp_path: Path
) -> None:
    first = write(tmp_path, settings, "eu1")
    assert first == "Changed tokens.map and hosts.map: reload HAProxy.\n"
    assert write(tmp_path, settings, "eu1") == "Nothing has changed.\n"
    assert write(tmp_path, settings, "us1") == first
    assert read(tmp_path, "tokens") == {"ch_eu1-": "eu1", "ch_us1-": "us1"}
    assert read(tmp_path, "hosts") == {"eu1.state.example": "eu1", "us1.state.example": "us1"}
    assert (tmp_path / "tokens.map").stat().st_mode & 0o777 == 0o644
    leftovers = [path.name for path in tmp_path.rglob(".*") if path.name != ".lock"]
    assert leftovers == []


def test_output__workspace_moved_twice__goes_to_the_cell_that_has_it(
    alice: Person, no_tokens: None, settings: Any, tmp_path: Path
) -> None:
    """The rows of the three cells, one after the other in one database."""
    token, _ = make(alice)
    key = token.beginning
    move(alice, "us1")
    write(tmp_path, settings, "eu1")
    assert read(tmp_path, "tokens")[key] == "us1"
    move(alice, "ap1")
    with pytest.raises(CommandError, match=f"{key} belongs to the cells ap1 and us1"):
        write(tmp_path, settings, "us1")
    assert read(tmp_path, "tokens")[key] == "us1"
    write(tmp_path, settings, "ap1")
    assert read(tmp_path, "tokens")[key] == "ap1"


def test_output__same_host_name_twice__is_refused_and_the_maps_stay(
    no_tokens: None, settings: Any, tmp_path: Path
) -> None:
    write(tmp_path, settings, "eu1")
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.map")}
    settings.CELL = "us1"
    with pytest.raises(CommandError, match=r"eu1.state.example belongs to the cells eu1 and us1"):
        cells("--output", str(tmp_path))
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.map")} == before


def test_output__folder_that_cannot_be_created__is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CommandError, match="cannot write"):
        cells("--output", str(tmp_path / "file"))
