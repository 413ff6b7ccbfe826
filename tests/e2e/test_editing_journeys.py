"""What users do with values in a real browser: fix, merge, bulk actions, without JavaScript."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from state_admin.domain.access import Role
from state_admin.domain.values import Raw
from state_admin.models import Entry, EntryRevision, Revert
from state_admin.services import revert_jobs
from state_admin.services.entries import put_entries
from state_admin.services.entry_views import read_entry
from tests.builders import Person, make_namespace, make_person, make_record, put

from .conftest import Errors, open_context, press

SCHEMA = {"properties": {"goal": {"type": "string"}, "steps": {"type": "array"}}}


@pytest.fixture
def team(server: LiveServer, alice: Person) -> None:
    make_namespace(alice.actor, "team", schema=SCHEMA, default={})
    put(alice.actor, "team", "thread::t1", {"goal": "ship", "steps": ["a"]})
    put(alice.actor, "team", "thread::t2", {"goal": "rest"})


def value(alice: Person, key: str = "thread::t1") -> object:
    entry = read_entry(actor=alice.actor, namespace="team", key=key)
    return json.loads(entry.value) if entry.exists else None


def editor(page: Page) -> Locator:
    """The text of the editor; Playwright reads its shadow root."""
    return page.locator(".cm-content")


def violations(page: Page) -> list[str]:
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:120]}"
        for each in Axe().run(page).response["violations"]
    ]


@pytest.mark.usefixtures("team")
def test_journey__invalid_value__is_shown_at_its_place_and_fixed(
    page: Page, errors: Errors, alice: Person
) -> None:
    errors.expected.add(422)
    page.goto("/state?namespace=team")
    page.get_by_role("link", name="thread::t1").press("Enter")
    expect(page).to_have_url(re.compile("/state/team/"))
    press(page, "e")
    expect(editor(page)).to_be_focused()
    editor(page).fill('{\n  "goal": 7,\n  "steps": "x"\n}')
    expect(page.locator("[data-check-says]")).to_contain_text("line 2, /goal")
    expect(page.locator(".cm-lintRange-error")).to_have_text(["7", '"x"'])
    assert violations(page) == []
    assert value(alice) == {"goal": "ship", "steps": ["a"]}
    editor(page).press("Control+s")
    expect(page.get_by_role("alert").filter(has_text="does not satisfy")).to_contain_text("line 2")
    expect(page.locator(".cm-lintRange-error")).to_have_text(["7", '"x"'])
    expect(editor(page)).to_be_focused()
    editor(page).fill('{\n  "goal": "rest",\n  "steps": ["x"]\n}')
    expect(page.locator("[data-check-says]")).to_have_text("Valid: matches the schema.")
    editor(page).press("Control+s")
    expect(page.locator("[data-toast]")).to_contain_text("Saved version 2")
    assert value(alice) == {"goal": "rest", "steps": ["x"]}


@pytest.mark.usefixtures("team")
def test_editor__typing_over_lines__replaces_them_without_csp_report(page: Page) -> None:
    page.goto("/entry/edit/team/thread::t1")
    editor(page).click()
    for _ in range(3):
        editor(page).fill('{\n  "goal": "rest",\n  "steps": ["x"]\n}')
        press(page, "Control+End", "ArrowUp", "Shift+ArrowUp", "Shift+ArrowUp")
        page.keyboard.type("xy")
        expect(editor(page).locator(".cm-line")).to_have_text(['{xy "steps": ["x"]', "}"])


def test_editors__of_one_page__share_their_theme_and_have_their_own_height(page: Page) -> None:
    """Firefox would not apply a theme that is added to their style sheet for the second one."""
    page.goto("/namespaces/+new")
    editors = page.locator(".cm-editor")
    expect(editors).to_have_count(2)
    first, second = (editors.nth(each) for each in range(2))
    assert first.get_attribute("class") == second.get_attribute("class")
    heights = [each.locator(".cm-content").bounding_box() for each in (first, second)]
    assert heights[0]["height"] == 2.6 * heights[1]["height"]  # type: ignore[index]


@pytest.mark.usefixtures("team")
def test_editor__large_value__is_fetched_after_the_page(page: Page, alice: Person) -> None:
    put(alice.actor, "team", "long", {"goal": "word " * 30_000})
    page.goto("/state/team/long")
    press(page, "e")
    expect(editor(page)).to_contain_text("word word")
    # With the editor's own key: the page contains only the visible part of a long line.
    editor(page).press("Control+a")
    page.keyboard.insert_text('{"goal": "short"}')
    editor(page).press("Control+s")
    expect(page.locator("[data-toast]")).to_contain_text("Saved version 2")
    assert value(alice, "long") == {"goal": "short"}


@pytest.mark.usefixtures("team")
def test_editor__escape__leaves_after_a_question_if_text_was_typed(
    page: Page, alice: Person
) -> None:
    page.goto("/entry/edit/team/thread::t1")
    editor(page).click()
    press(page, "Control+End")
    page.keyboard.type(" ")
    with page.expect_event("dialog") as asked:
        page.once("dialog", lambda dialog: dialog.dismiss())
        press(page, "Escape")
    assert asked.value.type == "beforeunload"
    expect(page).to_have_url(re.compile("/entry/edit/"))
    press(page, "Backspace", "Escape")
    expect(page).to_have_url(re.compile("/state/team/"))


@pytest.mark.usefixtures("team")
def test_editor__session_expired__asks_before_the_text_is_lost(page: Page, errors: Errors) -> None:
    errors.expected.add(401)  # the change stream, if it reconnects
    page.goto("/entry/edit/team/thread::t1")
    editor(page).fill('{"goal": "mine"}')
    page.context.clear_cookies(name="commonhold_session")
    with page.expect_event("dialog") as asked:
        page.once("dialog", lambda dialog: dialog.dismiss())
        page.get_by_role("button", name="Save").click()
    assert asked.value.type == "beforeunload"
    expect(editor(page)).to_have_text('{"goal": "mine"}')


@pytest.mark.usefixtures("team")
def test_journey__conflict__is_resolved_by_editing_the_merge(
    page: Page, errors: Errors, alice: Person
) -> None:
    errors.expected.add(409)
    page.goto("/entry/edit/team/thread::t1")
    put(alice.actor, "team", "thread::t1", {"goal": "theirs", "steps": ["a", "b"]})
    editor(page).fill('{"goal": "mine", "steps": ["a"]}')
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="changed while you were editing")).to_be_visible()
    expect(page.get_by_role("region", name="The three versions")).to_contain_text("mine")
    expect(page.locator(".cm-lintRange-warning")).to_have_text(['"theirs"'])
    expect(page.locator("#side-3 mark")).to_have_text('"mine"')
    assert violations(page) == []
    page.get_by_role("button", name="Save merged").click()  # the browser asks for a choice
    expect(page.get_by_label("Keep theirs")).to_be_focused()
    editor(page).fill('{"goal": "both", "steps": ["a", "b"]}')
    expect(page.get_by_label("Keep as edited below")).to_be_checked()
    editor(page).press("Control+s")
    toast = "Saved version 3. Kept the edited value at /goal"
    expect(page.locator("[data-toast]")).to_contain_text(toast)
    assert value(alice) == {"goal": "both", "steps": ["a", "b"]}


@pytest.mark.usefixtures("team")
def test_journey__conflict__keeps_the_chosen_values(
    page: Page, errors: Errors, alice: Person
) -> None:
    errors.expected.add(409)
    put(alice.actor, "team", "thread::t1", {"goal": "ship", "owner": "bob", "steps": ["a"]})
    page.goto("/entry/edit/team/thread::t1")
    put(alice.actor, "team", "thread::t1", {"goal": "theirs", "steps": ["a", "b"]})
    editor(page).fill('{"goal": "mine", "owner": "erin", "steps": ["a"]}')
    page.get_by_role("button", name="Save").click()
    goal, owner = (page.get_by_role("row", name=name) for name in ("/goal", "/owner"))
    goal.get_by_label("Keep mine").check()
    expect(editor(page)).to_contain_text('"goal": "mine"')
    goal.get_by_label("Keep theirs").check()
    expect(editor(page)).to_contain_text('"goal": "theirs"')
    owner.get_by_label("Keep mine").check()
    expect(editor(page)).to_contain_text('"owner": "erin"')
    page.get_by_role("button", name="Save merged").click()
    toast = "Saved version 4. Kept mine at /owner; theirs at /goal"
    expect(page.locator("[data-toast]")).to_contain_text(toast)
    assert value(alice) == {"goal": "theirs", "owner": "erin", "steps": ["a", "b"]}


@pytest.mark.usefixtures("team")
def test_journey__conflict_of_removed_items__is_chosen_item_by_item(
    page: Page, errors: Errors, alice: Person
) -> None:
    errors.expected.add(409)

    def tasks(**status: str) -> dict[str, object]:
        steps = [{"id": name, "status": word} for name, word in status.items()]
        return {"goal": "ship", "steps": steps}

    put(alice.actor, "team", "thread::t1", tasks(book="open", walk="open", call="open"))
    page.goto("/entry/edit/team/thread::t1")
    put(alice.actor, "team", "thread::t1", tasks(walk="late", call="done"))
    editor(page).fill(json.dumps(tasks(book="mine", walk="open")))
    page.get_by_role("button", name="Save").click()
    conflicts = page.get_by_role("region", name="Conflicts")
    book, call = (conflicts.get_by_role("row", name=name) for name in ("/steps/0", "/steps/2"))
    expect(book).to_contain_text("absent")
    expect(editor(page)).to_contain_text('"mine"')
    assert violations(page) == []
    book.get_by_label("Keep theirs").check()
    expect(editor(page)).not_to_contain_text('"mine"')
    call.get_by_label("Keep mine").check()
    expect(editor(page)).not_to_contain_text('"done"')
    book.get_by_label("Keep mine").check()
    expect(editor(page)).to_contain_text('"mine"')
    page.get_by_role("button", name="Save merged").click()
    toast = "Saved version 4. Kept mine at /steps/0, /steps/2"
    expect(page.locator("[data-toast]")).to_contain_text(toast)
    assert value(alice) == tasks(book="mine", walk="late")


@pytest.mark.usefixtures("team")
def test_journey__conflict_over_a_removed_version__compares_two_values(
    page: Page, errors: Errors, alice: Person
) -> None:
    errors.expected.add(409)
    page.goto("/entry/edit/team/thread::t1")
    put(alice.actor, "team", "thread::t1", {"goal": "theirs", "steps": ["a", "b"]})
    EntryRevision.objects.filter(version=1).delete()
    editor(page).fill('{"goal": "mine", "steps": ["a"]}')
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert").filter(has_text="no longer in the history")).to_be_visible()
    two = page.get_by_role("region", name="The two versions")
    expect(two.get_by_role("heading")).to_have_count(2)
    expect(page.get_by_role("region", name="From theirs to mine")).to_contain_text("/goal")
    assert violations(page) == []
    page.get_by_role("button", name="Save mine over theirs").click()
    expect(page.locator("[data-toast]")).to_contain_text("Saved version 3")
    assert value(alice) == {"goal": "mine", "steps": ["a"]}


@pytest.mark.usefixtures("team")
@pytest.mark.browser_context_args(java_script_enabled=False)
def test_journey__no_javascript__edits_and_merges(
    alice: Person, errors: Errors, page: Page
) -> None:
    errors.expected |= {409, 422}
    page.goto("/entry/edit/team/thread::t1")
    page.fill("#value", '{"goal": 7}')
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert").filter(has_text="does not satisfy")).to_contain_text("line 1")
    put(alice.actor, "team", "thread::t1", {"goal": "theirs", "steps": ["a"]})
    page.fill("#value", '{"goal": "ship", "steps": ["mine"]}')
    page.get_by_role("button", name="Save").click()
    expect(page.locator("main")).to_contain_text("No conflicts")
    page.get_by_role("button", name="Save merged").click()
    expect(page.get_by_role("heading", name="thread::t1")).to_be_visible()
    assert value(alice) == {"goal": "theirs", "steps": ["mine"]}


@pytest.mark.usefixtures("team")
def test_editor__very_large_value__is_a_textarea_with_a_reason(page: Page, alice: Person) -> None:
    make_namespace(alice.actor, "big", max_value_bytes=8_000_000)
    put(alice.actor, "big", "global", {"text": "x" * 5_000_000})
    page.goto("/entry/edit/big/global")
    expect(page.locator("[data-check-says]")).to_contain_text("larger than 1 MB")
    expect(page.locator("textarea#value")).to_be_visible()
    page.fill("#reason", "still quick")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("[data-toast]")).to_contain_text("No changes")


@pytest.mark.usefixtures("team")
def test_editor__two_users__see_each_other(
    page: Page, browser: Browser, server: LiveServer
) -> None:
    page.goto("/entry/edit/team/thread::t1")
    expect(page.locator("#presence .banner")).to_have_count(0)
    erin = open_context(browser, server, make_person("erin", "acme", Role.EDITOR))
    other = erin.new_page()
    other.goto("/entry/edit/team/thread::t1")
    expect(other.locator("#presence")).to_contain_text("alice has been editing this")
    assert violations(other) == []
    erin.close()


@pytest.mark.usefixtures("team")
def test_schema__typed__is_checked_without_a_button(page: Page) -> None:
    page.goto("/namespaces/team/edit")
    check = page.locator("#namespace-live")
    expect(check).to_be_empty()
    editor(page).first.press("ControlOrMeta+a")
    page.keyboard.insert_text('{"properties": {"goal": {"type": "integer"}}}')
    expect(check).to_contain_text("2 entries do not match this schema")
    expect(check.get_by_role("link", name="thread::t1")).to_be_visible()
    expect(editor(page).first).to_be_focused()
    page.keyboard.press("Backspace")
    expect(check).to_contain_text("The schema is not valid JSON")
    page.keyboard.insert_text("}")
    expect(check).to_contain_text("2 entries do not match this schema")
    assert violations(page) == []
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("button", name="Save anyway").click()
    expect(page.locator("[data-toast]")).to_contain_text("Saved as schema version 2")


def test_config__form__focuses_the_mistake_and_saves(
    page: Page, errors: Errors, alice: Person
) -> None:
    errors.expected.add(422)
    make_record(alice.actor, "providers", "openai", {"adapter": "openai"})
    page.goto("/config/models/big/edit")
    page.get_by_label("Upstream model").fill("example-large")
    page.get_by_label("Provider").fill("nobody")
    page.get_by_role("group", name="Modalities").get_by_label("image").first.check()
    page.get_by_role("button", name="Save").click()
    page.get_by_role("alert").get_by_role("link", name="Provider").click()
    provider = page.get_by_label("Provider")
    expect(provider).to_have_accessible_description(re.compile("Providers/nobody does not exist"))
    assert violations(page) == []
    provider.fill("openai")
    press(page, "Control+s")
    expect(page.locator("[data-toast]")).to_contain_text("Saved version 1")
    expect(page.locator(".tree")).to_contain_text("image")


def test_config__conflict__shows_both_sides_without_secrets(
    page: Page, errors: Errors, alice: Person
) -> None:
    errors.expected.add(409)
    make_record(alice.actor, "providers", "openai", {"adapter": "openai", "api_key": "canary-1"})
    page.goto("/config/providers/openai/edit?as=json")
    theirs = {"adapter": "openai", "api_key": "canary-2", "timeout_secs": 10}
    make_record(alice.actor, "providers", "openai", theirs)
    mine = json.loads(page.locator("textarea#value").input_value())
    editor(page).fill(json.dumps(mine | {"timeout_secs": 20}))
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="changed while you were editing")).to_be_visible()
    assert "canary" not in page.content()
    assert violations(page) == []


@pytest.mark.usefixtures("team")
def test_journey__bulk_tag__by_filter_with_preview_and_undo(page: Page, alice: Person) -> None:
    put(alice.actor, "team", "global", {})
    page.goto("/state?namespace=team&prefix=thread")
    page.get_by_role("button", name="All matching").click()
    page.get_by_role("button", name="Tag…", exact=True).click()
    dialog = page.get_by_role("dialog", name="Tag 2 entries?")
    expect(dialog).to_contain_text("team/thread::t2")
    expect(dialog).not_to_contain_text("global")
    expect(dialog.get_by_label("Tag", exact=True)).to_be_focused()
    assert violations(page) == []
    page.keyboard.type("vip")
    dialog.get_by_label("Reason").fill("the big ones")
    dialog.get_by_role("button", name="Tag 2 entries").click()
    expect(page.locator("[data-toast]")).to_contain_text("Tagged 2 entries")
    expect(page.locator("tbody .tag")).to_have_text(["vip", "vip"])
    page.locator("[data-undo] button").click()
    expect(page.locator("[data-toast]").last).to_contain_text("Reverted 2 entries")
    expect(page.locator("tbody .tag")).to_have_count(0)


@pytest.mark.usefixtures("team")
def test_journey__large_undo__is_followed_live_and_undone(
    page: Page, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revert_jobs, "AT_ONCE", 0)
    monkeypatch.setattr(revert_jobs, "MOST", 1)
    page.goto("/state?namespace=team")
    page.get_by_label("Select all").check()
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete 2 entries").click()
    page.locator("[data-undo] button").click()
    expect(page.get_by_role("heading", name="Reverting a request")).to_be_visible()
    expect(page.locator("#revert")).to_contain_text("Searching the audit log")
    assert violations(page) == []
    put(alice.actor, "team", "thread::t2", {"goal": "mine"})
    job = Revert.objects.get()
    while not Revert.objects.filter(reverted=1):
        revert_jobs.run_revert(job.pk, seconds=0)
    expect(page.locator("#revert")).to_contain_text("1 of 2 entries")
    while revert_jobs.run_revert(job.pk, seconds=0) == "queued":
        pass
    expect(page.get_by_role("heading", name="Reverted 1 entry")).to_be_visible()
    expect(page.locator("#revert table")).to_contain_text("it was written since then")
    assert violations(page) == []
    monkeypatch.setattr(revert_jobs, "AT_ONCE", 60)
    page.get_by_role("button", name="Undo this revert").click()
    expect(page.locator("[data-toast]").last).to_contain_text("Reverted 1 entry")
    expect(page).to_have_url(re.compile(r"/state\?namespace=team$"))
    assert list(Entry.objects.live().values_list("key", flat=True)) == ["thread::t2"]


@pytest.mark.usefixtures("team")
def test_journey__change__request_is_reverted_from_its_line_by_keyboard(
    page: Page, alice: Person
) -> None:
    make_namespace(alice.actor, "notes")
    actor = replace(alice.actor, request_id="import-7")
    put_entries(actor=actor, puts=[("notes", key, Raw("1", 1)) for key in "abc"])
    page.goto("/changes?kind=entry")
    right = "all => all.map(each => each.getBoundingClientRect().right)"
    times = page.locator(".event > .at").evaluate_all(right)
    # Also of lines that have no button, and of those that are folded.
    assert len(times) > 3
    assert len(set(times)) == 1
    button = page.get_by_role("button", name="Revert the request that wrote notes/c…")
    button.focus()
    press(page, "Enter")
    dialog = page.get_by_role("dialog", name="Revert 3 entries?")
    expect(dialog).to_contain_text("notes/a")
    expect(dialog.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("the wrong file")
    press(page, "Enter")
    expect(page.locator("[data-toast]")).to_contain_text("Reverted 3 entries")
    expect(page).to_have_url(re.compile(r"/changes\?kind=entry$"))
    assert not Entry.objects.live().filter(namespace__name="notes")
    page.get_by_role("link", name="All reverts").click()
    expect(page.locator("#revert-table tbody tr")).to_contain_text(["import-7"])
    expect(page.locator("#revert-table tbody")).to_contain_text("the wrong file")
    assert violations(page) == []


@pytest.mark.usefixtures("team")
def test_journey__bulk__lists_skipped_entries_and_exports(page: Page, alice: Person) -> None:
    page.goto("/state?namespace=team")
    page.get_by_label("Select all").check()
    put(alice.actor, "team", "thread::t2", {"goal": "changed"})
    page.get_by_role("button", name="Delete…").click()
    dialog = page.get_by_role("dialog", name="Delete 2 entries?")
    dialog.get_by_role("button", name="Delete 2 entries").click()
    expect(page.locator("#entry-browser")).to_contain_text("alice wrote version 2 in the meantime")
    assert violations(page) == []
    page.get_by_role("link", name="Back to the list").click()
    page.get_by_role("button", name="All matching").click()
    page.get_by_role("button", name="Export…").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export 1 entry").click()
    lines = download.value.path().read_text().splitlines()
    assert [json.loads(line)["value"] for line in lines] == [{"goal": "changed"}]
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.usefixtures("team")
def test_journey__saved_view__with_filters_applied_by_htmx_opens_the_list(page: Page) -> None:
    page.goto("/threads")
    page.get_by_role("button", name="Filter", exact=True).click()
    page.get_by_label("Agent").fill("courier")
    press(page, "Enter")
    expect(page).to_have_url(re.compile(r"/threads\?agent=courier$"))
    page.get_by_text("Manage views").click()
    page.get_by_label("Save these filters as").fill("Courier's")
    page.get_by_role("button", name="Save view").click()
    expect(page.locator("[data-toast]")).to_contain_text("Saved view Courier's")
    page.get_by_text("Manage views").click()
    assert violations(page) == []
    page.get_by_role("button", name="Make Courier's the default view").click()
    expect(page.locator("[data-toast]")).to_contain_text("Default view set")
    page.goto("/threads")
    expect(page).to_have_url(re.compile(r"/threads\?agent=courier$"))
    page.get_by_role("navigation", name="Saved views").get_by_role("link", name="All").click()
    expect(page).to_have_url(re.compile(r"/threads\?view=all$"))


@pytest.mark.usefixtures("team")
def test_journey__keyboard_only__merge_and_save(page: Page, errors: Errors, alice: Person) -> None:
    errors.expected.add(409)
    page.goto("/state?namespace=team")
    press(page, "j", "Enter")
    expect(page.get_by_role("heading", name="thread::t1")).to_be_visible()
    press(page, "e")
    expect(editor(page)).to_be_focused()
    put(alice.actor, "team", "thread::t1", {"goal": "theirs"})
    press(page, "Control+a")
    page.keyboard.type('{"goal": "mine"}')
    press(page, "Control+Enter")
    expect(page.get_by_role("heading", name="changed while you were editing")).to_be_visible()
    expect(editor(page)).to_be_focused()
    press(page, "Control+a")
    page.keyboard.type('{"goal": "both"}')
    expect(page.get_by_label("Keep as edited below")).to_be_checked()
    press(page, "Control+s")
    expect(page.locator("[data-toast]")).to_contain_text("Saved version 3")
    assert value(alice) == {"goal": "both"}
