"""The frame of pages: navigation, counts, errors, health, and the rules of templates and vendored
files."""

from __future__ import annotations

import hashlib
import logging
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from structlog.stdlib import ProcessorFormatter
from structlog.testing import capture_logs

from project.env import BASE_DIR
from state_admin.domain.access import Actor
from state_admin.models import Change, Run, Sweep
from state_admin.models.counts import bounded_counts
from state_admin.models.feed_sql import Position
from state_admin.models.sessions import SessionStore
from state_admin.streams import cursors
from state_admin.web import overview, shell
from state_admin.web.shell import format_count
from tests.builders import Person, make_namespace, make_run, make_thread, put

TEMPLATES = sorted((BASE_DIR / "templates").rglob("*.html"))
STATIC = BASE_DIR / "static"


def test_favicon__without_login_or_database__leads_to_the_image_and_is_cached() -> None:
    response = Client().get("/favicon.ico")
    assert re.fullmatch(r"/static/favicon.*\.svg", response.headers["Location"])
    assert response["Cache-Control"] == "public, max-age=86400"
    assert not response.cookies
    assert "Vary" not in response.headers


def test_counts__workspace__include_only_its_own(alice: Person, mallory: Person) -> None:
    make_namespace(alice.actor, "n")
    put(alice.actor, "n", "a", 1)
    put(alice.actor, "n", "b", 1)
    assert bounded_counts(alice.actor).entries == 2
    assert bounded_counts(mallory.actor).entries == 0


def test_counts__stuck_runs__equal_the_queryset(alice: Person) -> None:
    past = timezone.now() - timedelta(minutes=5)
    ways: list[dict[str, Any]] = [
        {"lease_expires_at": past},
        {"lease_expires_at": None, "lease_released_at": past},
        {"status": "waiting", "deadline_at": past},
        {"status": "waiting", "ticket_due_at": past},
        {"step_count": 3},
        {"times_out_at": past},
    ]
    for number, way in enumerate([*ways, {}, {"status": "created"}]):
        make_thread(alice.actor, f"t{number}")
        make_run(alice.actor, f"t{number}", f"r{number}", max_rounds=3)
        Run.objects.filter(public_id=f"r{number}").update(**way)
    counts = bounded_counts(alice.actor)
    assert counts.stuck_runs == Run.objects.visible_to(alice.actor).stuck().count() == len(ways)
    assert (counts.running_runs, counts.waiting_runs, counts.created_runs) == (5, 2, 1)
    assert counts.active_runs == 8


def test_counts__beyond_the_limit__have_a_plus() -> None:
    assert (format_count(10_000), format_count(10_001)) == ("10,000", "10,000+")


def test_navigation__page__is_marked_current(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "n")
    for path, label in (
        ("/", "Overview"),
        ("/state/n/k", "State browser"),
        ("/namespaces/n", "Namespaces"),
    ):
        page = admin.get(path).content.decode()
        (current,) = re.findall(
            r'aria-current="page">\s*<svg.*?</svg>([^<\n]+)', page[: page.index("</nav>")]
        )
        assert current.strip() == label


@pytest.mark.django_db
@pytest.mark.parametrize("role", ["admin", "editor", "viewer"])
def test_navigation__every_link__opens_for_its_role(
    role: str, request: pytest.FixtureRequest
) -> None:
    client: Client = request.getfixturevalue(role)
    page = client.get("/").content.decode()
    links = re.findall(r'<a href="([^"]+)" data-go=', page[: page.index("</nav>")])
    assert ("/members" in links, "/access" in links) == (role == "admin", role == "admin")
    links += re.findall(r'<a data-row href="([^"]+)"', client.get("/go").content.decode())
    assert {link: client.get(link).status_code for link in links} == dict.fromkeys(links, 200)


@pytest.mark.django_db
@pytest.mark.parametrize("who", ["alice", "mallory"])
def test_navigation__workspace__is_shown(who: str, request: pytest.FixtureRequest) -> None:
    person: Person = request.getfixturevalue(who)
    shown = person.browser().get("/threads").content.decode()
    (link,) = re.findall(r'<a class="where" href="/workspaces"[^>]*>(.*?)</a>', shown)
    assert f"<span>{person.workspace.slug}</span>" in link


def test_navigation__letters__are_unique() -> None:
    keys = [item.key for _, items in shell.NAVIGATION for item in items]
    assert len(set(keys)) == len(keys)
    assert "g" not in keys


def test_palette__query__finds_pages_keys_and_namespaces(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", "nice/key", 1)
    make_thread(alice.actor, "night")
    headers = {"HX-Request": "true", "HX-Request-Type": "partial"}

    def found(query: str) -> list[str]:
        page = admin.get(f"/go?q={query}", headers=headers).content.decode()
        return re.findall(r'id="hit-[0-9]+" href="([^"]+)"', page)

    assert set(found("n")) >= {"/namespaces/notes", "/state/notes/nice%2Fkey", "/threads/night"}
    assert found("notes/ni") == ["/state/notes/nice%2Fkey", *searches("notes%2Fni")]
    assert found("ote") == ["/namespaces/notes", *searches("ote")]
    assert found("KEY nice")[0] == "/state/notes/nice%2Fkey"
    assert found("nothing of this") == searches("nothing+of+this")
    assert found("%2Fprice+%3E") == searches("%2Fprice+%3E")


def searches(query: str) -> list[str]:
    """The last results: searches of the lists."""
    return [f"/state?text={query}", f"/threads?text={query}"]


def test_palette__words_of_a_title__find_the_thread(admin: Client, alice: Person) -> None:
    make_thread(alice.actor, "t-17", title="Lisbon in May")
    page = admin.get("/go?q=lisb").content.decode()
    assert "Lisbon in May" in page
    assert page.count("/threads/t-17") == 1
    assert admin.get("/go?q=t-17").content.decode().count("/threads/t-17") == 1
    assert "/threads/t-17" not in admin.get("/go?q=porto").content.decode()


def test_palette__words_of_a_value__find_the_entry_with_its_text(
    admin: Client, alice: Person
) -> None:
    make_namespace(alice.actor, "trips")
    put(alice.actor, "trips", "t1", {"to": "Lisbon <b>in</b> May"})
    page = admin.get("/go?q=lisb").content.decode()
    assert "trips/t1" in page
    assert "Lisbon &lt;b&gt;in&lt;/b&gt; May" in page
    assert "trips/t1" not in admin.get("/go?q=porto").content.decode()


def hits(client: Client, query: str) -> list[str]:
    headers = {"HX-Request": "true", "HX-Request-Type": "partial"}
    page = client.get(f"/go?q={query}", headers=headers).content.decode()
    *found, entries, threads = re.findall(r"</svg><span>([^<]*)</span>", page)
    assert entries == f"Search keys and values for “{query}”"
    assert threads == f"Search titles and messages of threads for “{query}”"
    return found


def test_palette__results__are_exact_then_prefix_then_resources_then_substrings(
    admin: Client, alice: Person
) -> None:
    make_namespace(alice.actor, "runs-archive")
    make_thread(alice.actor, "run")
    make_thread(alice.actor, "run-1")
    assert hits(admin, "run") == ["run", "Runs", "runs-archive", "run-1"]
    assert hits(admin, "runs")[0] == "Runs"
    assert hits(admin, "ser") == ["State browser"]


def test_palette__actions__are_those_permitted(admin: Client, viewer: Client) -> None:
    new = ["New entry", "New namespace", "New token", "New webhook", "New member"]
    assert hits(admin, "new") == [*new, "Show new changes"]
    assert hits(viewer, "new") == ["Show new changes"]
    assert hits(viewer, "audit") == []
    assert "Sign out" in hits(viewer, "sign")


@pytest.mark.parametrize(
    ("url", "action"),
    [
        ("/namespaces", "New namespace"),
        ("/tokens", "New token"),
        ("/webhooks", "New webhook"),
        ("/members", "New member"),
    ],
)
def test_palette__label_of_a_button__finds_its_action(admin: Client, url: str, action: str) -> None:
    page = admin.get(url).content.decode()
    found = re.search(r'<a class="btn push" data-kind="primary".*?</svg>(.*?)</a>', page)
    assert found
    assert hits(admin, found[1]) == [action]


def test_help__every_shortcut__is_listed(admin: Client) -> None:
    script = (STATIC / "js/app.js").read_text()
    table = script[script.index("const KEYS = {") : script.index("};", script.index("const KEYS"))]
    keys = re.findall(r'^  "?(.)"?: \(\)', table, re.M)
    assert len(keys) >= 7
    page = admin.get("/").content.decode()
    shown = set(re.findall(r"<kbd>([^<]+)</kbd>", page[page.index('id="keys"') :]))
    letters = {item.key for _, items in shell.NAVIGATION for item in items}
    assert shown >= {*keys, *letters, "g"}


def test_live__cursor__can_resume_unless_it_is_too_old_or_malformed(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("state_admin.web.health.STARTING_SECONDS", 0.0)
    make_namespace(alice.actor, "n")
    now = admin.get("/live").json()
    assert now["resumes"]
    assert now["items"]["n"] == {"count": "1", "health": ""}
    assert now["items"]["y"] == {"count": "no worker", "health": "failed"}
    assert admin.get("/live", {"cursor": now["cursor"]}).json()["resumes"]
    old = cursors.seal(Position(1, 1), timezone.now() - timedelta(days=30))
    assert not admin.get("/live", {"cursor": old}).json()["resumes"]
    assert not admin.get("/live", {"cursor": "nonsense"}).json()["resumes"]


def test_live__signed_out__redirects_to_the_login(client: Client, db: None) -> None:
    assert client.get("/live").status_code == 302


@pytest.mark.django_db(transaction=True)
def test_page__changed_while_it_is_rendered__change_is_after_its_cursor(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor, "n")
    newest = overview._newest

    def meanwhile(actor: Actor) -> list[Change]:
        found = newest(actor)
        put(alice.actor, "n", "unseen", 1)
        return found

    monkeypatch.setattr(overview, "_newest", meanwhile)
    page = admin.get("/", headers={"Sec-Fetch-Dest": "document"}).content.decode()
    assert "unseen" not in page
    (cursor,) = re.findall(r'data-cursor="([^"]+)"', page)
    missed = alice.api("GET", f"/changes?cursor={cursor}").json()["items"]
    assert [item["key"] for item in missed] == ["unseen"]


def test_palette__other_workspace__finds_nothing(stranger: Client, alice: Person) -> None:
    make_namespace(alice.actor, "secretive")
    put(alice.actor, "secretive", "k1", {"plan": "hidden"})
    for query in ("secret", "k1", "hidden"):
        assert b"secretive" not in stranger.get(f"/go?q={query}").content


def test_error__database_unavailable__is_a_503_page(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise OperationalError("server closed the connection")

    monkeypatch.setattr("state_admin.web.overview._newest", broken)
    response = admin.get("/")
    assert response.status_code == 503
    assert b"The database is not available" in response.content
    part = admin.get("/", headers={"HX-Request": "true", "HX-Request-Type": "partial"})
    assert part["HX-Retarget"] == "#problem"
    assert b"<html" not in part.content


@pytest.mark.parametrize("path", ["/metrics", "/login"])
def test_error__database_unavailable_outside_of_a_page__is_a_503_without_traceback(
    path: str,
    admin: Client,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(*args: object) -> None:
        raise OperationalError("server closed the connection")

    settings.METRICS_TOKEN = "secret"
    monkeypatch.setattr("state_admin.web.metrics.read_figures", broken)
    monkeypatch.setattr(SessionStore, "_get_session_from_db", broken)
    admin.raise_request_exception = False
    with capture_logs() as lines:
        response = admin.get(path, headers={"Authorization": "Bearer secret"})
    assert (response.status_code, response["Retry-After"]) == (503, "1")
    assert b"The database did not respond in time" in response.content
    assert [line["event"] for line in lines] == ["database.unavailable"]
    (record,) = (each for each in caplog.records if each.name == "django.request")
    formatters = [handler.formatter for handler in logging.getLogger().handlers]
    (ours,) = (each for each in formatters if isinstance(each, ProcessorFormatter))
    text = ours.format(record)
    assert "request.failed" in text
    assert "Traceback" not in text


def test_error__unexpected__is_a_500_without_details(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr("state_admin.web.overview._newest", broken)
    admin.raise_request_exception = False
    response = admin.get("/")
    assert response.status_code == 500
    assert b"secret detail" not in response.content
    assert response["X-Request-ID"].encode() in response.content


def test_healthz__process__responds_without_database(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


def test_readyz__worker__is_determined_by_its_sweeps(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("state_admin.web.health.STARTING_SECONDS", 0.0)
    assert client.get("/readyz").json()["status"] == "degraded"
    Sweep.objects.create(name="x", started_at=timezone.now())
    assert client.get("/readyz").json() == {
        "status": "ok",
        "checks": {"database": "ok", "migrations": "ok", "worker": "ok"},
    }
    Sweep.objects.update(started_at=timezone.now() - timedelta(minutes=3))
    assert client.get("/readyz").json()["checks"]["worker"] == "silent"


def test_readyz__database_gone__is_503(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> bool:
        raise OperationalError("gone")

    monkeypatch.setattr("state_admin.web.health.migrations_applied", broken)
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"]["database"] == "unreachable"


each_template = pytest.mark.parametrize(
    "template", TEMPLATES, ids=lambda path: str(path.relative_to(BASE_DIR))
)


@each_template
def test_template__form__has_the_shared_reason_and_cancel_beside_its_button(template: Path) -> None:
    text = template.read_text()
    reasons = len(re.findall(r'<input type="text"[^>]* name="reason"', text))
    assert reasons == (template.name == "_reason.html")
    cancel = r'<(?:a|button) class="([^"]*)"[^>]*>(?:{%[^>]*%}[^<>]*)?Cancel(?:{% endif %})?</'
    assert set(re.findall(cancel, text)) <= {"btn push"}


@each_template
def test_template__content_security_policy__is_satisfied(template: Path) -> None:
    text = template.read_text()
    for banned in (
        r"\sstyle=",
        r"\shx-on",
        r"\son[a-z]+=",
        r"js:",
        r"javascript:",
        r"\|safe\b",
        r"autoescape",
    ):
        assert not re.search(banned, text), f"{banned} in {template.name}"
    for script in re.findall(r"<script[^>]*>", text):
        assert "src=" in script
    for trigger in re.findall(r'hx-trigger="([^"]*)"', text):
        assert "[" not in trigger


def test_python__html__is_never_marked_safe_manually() -> None:
    for path in (BASE_DIR / "state_admin").rglob("*.py"):
        assert "mark_safe" not in path.read_text(), path


def test_vendored__files__match_the_list() -> None:
    rows = re.findall(
        r"^\| `([^`]+)` \|.*\| `([0-9a-f]{64})` \|",
        (STATIC / "vendor/VENDORED.md").read_text(),
        re.M,
    )
    listed = dict(rows)
    present = {
        str(path.relative_to(STATIC))
        for path in (STATIC / "vendor").rglob("*.*")
        if path.suffix in (".js", ".mjs", ".css", ".woff2")
    }
    assert present | {"icons.svg"} == set(listed)
    for name, digest in listed.items():
        assert hashlib.sha256((STATIC / name).read_bytes()).hexdigest() == digest, name


def test_icons__used__are_in_the_sprite() -> None:
    sprite = set(re.findall(r'<symbol id="([^"]+)"', (STATIC / "icons.svg").read_text()))
    used = {
        name for path in TEMPLATES for name in re.findall(r'{% icon "([^"]+)"', path.read_text())
    } | {item.icon for _, items in shell.NAVIGATION for item in items}
    assert used <= sprite


def test_explanations__each__is_a_heading_of_the_documentation() -> None:
    for page, _, anchor in (each.partition("#") for each in shell.EXPLAINED_BY.values()):
        text = (BASE_DIR / "docs" / f"{page}.md").read_text()
        headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        anchors = {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}
        assert {anchor} - {""} <= anchors, page


def test_explanations__of_the_navigation__each_page_has_one() -> None:
    paths = [reverse(item.url_name) for _, items in shell.NAVIGATION for item in items]
    assert [path for path in paths if path.split("/")[1] not in shell.EXPLAINED_BY] == []


def test_header__of_a_page__links_to_its_documentation(alice: Person) -> None:
    page = alice.browser().get("/inbox").content.decode()
    assert 'href="/docs/concepts/people-and-workers.html#ticket-and-decision"' in page
