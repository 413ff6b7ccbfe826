"""Which role may use which URL of the admin, in one table. A URL or method without a row fails. Also: MCP tools have
the roles of their operations (test_permissions.py), and commands are for operators only."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import transaction
from django.test import Client, RequestFactory
from django.urls import URLPattern, reverse

from project.env import BASE_DIR
from state_admin.domain.access import Role
from state_admin.mcp.tools import TOOLS
from state_admin.models import (
    ApiToken,
    AuditRow,
    Dispatch,
    Membership,
    SavedView,
    WebhookDelivery,
)
from state_admin.web.urls import urlpatterns
from tests.builders import Person, make_token
from tests.contract.test_permissions import TABLE as OPERATIONS
from tests.e2e.pages import fill
from tests.web.conftest import admin, client, editor, stranger, viewer

__all__ = ["admin", "client", "editor", "stranger", "viewer"]

pytestmark = pytest.mark.django_db

# The name of the URL, then the least role for GET and for POST: V(iewer), E(ditor), A(dmin). "h": the admin
# of another workspace gets the response of an absent resource.
TABLE = """
workspaces                V   V
palette                   V   -
overview                  V   -
change-list               V   -
change-list-json          V   -
change-list-csv           V   -
audit-list                A   -
audit-list-json           A   -
audit-list-csv            A   -
audit-diff                A   -
entry-list                V   -
entry-list-json           V   -
entry-list-csv            V   -
entry-bulk                -   E
run-list-bulk             -   E
thread-list-bulk          -   A
mailbox-bulk              -   E
inbox-bulk                -   E
token-list-bulk           -   A
webhook-detail-bulk       -   A
revert-start              -   E
revert-new                E   E
revert-list               V   -
revert-list-json          V   -
revert-list-csv           V   -
revert-detail             Vh  -
revert-cancel             -   Eh
entry-cell                Eh  E
entry-new                 E   -
entry-edit                Eh  Eh
entry-check               -   E
entry-presence            -   Eh
run-knowledge             Vh  -
entry-readers             Vh  -
thread-compact-snapshots  Ah  Ah
namespace-compact         Ah  Ah
namespace-old-versions    Ah  -
entry-pin                 -   E
entry-delete              Eh  E
entry-restore             E   E
entry-undo                -   E
entry-tree                Vh  -
entry-raw                 Vh  -
entry-newer               Vh  -
entry-detail              Vh  -
entry-history-json        Vh  -
entry-history-csv         Vh  -
namespace-matches         V   -
namespace-offers          V   -
thread-matches            V   -
thread-named              V   -
thread-id-offers          V   -
thread-offers             V   -
namespace-new             A   A
namespace-edit            Ah  Ah
namespace-presence        -   Ah
namespace-undo            -   Ah
namespace-unregister      Ah  Ah
namespace-reregister      -   Ah
namespace-list            V   -
namespace-list-json       V   -
namespace-list-csv        V   -
namespace-detail          Vh  -
system                    V   -
usage                     V   -
thread-list               V   -
thread-list-json          V   -
thread-list-csv           V   -
thread-detail             Vh  -
thread-delete             Ah  Ah
thread-message            Vh  -
thread-message-sent       Vh  -
thread-piece              V   -
thread-value              V   -
thread-mark               -   E
thread-restore            E   E
thread-fork               E   E
thread-compact            -   Eh
view-save                 -   V
view-change               -   V
run-list                  V   -
run-list-json             V   -
run-list-csv              V   -
thread-runs-json          Vh  -
thread-runs-csv           Vh  -
run-detail                Vh  -
run-lineage               Vh  -
run-act                   Eh  Eh
inbox                     V   -
inbox-json                V   -
inbox-csv                 V   -
ticket-detail             Vh  Eh
ticket-list-json          V   -
ticket-list-csv           V   -
mailbox                   V   -
mailbox-json              V   -
mailbox-csv               V   -
mailbox-replay            E   E
mailbox-clear             A   A
dispatch-payload          Vh  -
dispatch-replay           -   Eh
dispatch-cancel           E   Eh
compaction-list           V   -
compaction-list-json      V   -
compaction-list-csv       V   -
compaction-detail         Vh  -
compaction-undo           Eh  Eh
compaction-cancel         Eh  Eh
compaction-retry          -   Eh
policy-list               V   -
policy-list-json          V   -
policy-list-csv           V   -
policy-new                A   -
policy                    V   A
policy-presence           -   A
policy-undo               -   V
state-key-list            V   -
state-key-list-json       V   -
state-key-list-csv        V   -
plugin-list-json          V   -
plugin-list-csv           V   -
plugin-install            A   A
plugin-uninstall          A   A
config                    V   -
config-list               V   -
config-list-json          V   -
config-list-csv           V   -
config-new                A   -
config-edit               A   A
config-check              -   A
config-delete             Ah  Ah
config-detail             Vh  -
member-list               A   -
member-new                A   A
member-list-json          A   -
member-list-csv           A   -
member-role               -   A
member-link               -   Ah
member-remove             Ah  Ah
member-sessions           Ah  Ah
token-list                A   -
token-new                 A   A
token-list-json           A   -
token-list-csv            A   -
token-edit                Ah  Ah
token-rotate              Ah  A
token-revoke              Ah  Ah
access                    A   -
sessions                  V   -
sessions-json             V   -
sessions-csv              V   -
session-end               -   V
oidc-link                 -   V
oidc-unlink               -   V
totp                      V   V
totp-codes                V   V
totp-remove               V   V
sign-in                   V   -
password                  V   V
live                      V   -
member-totp               Ah  A
webhook-list              V   -
webhook-list-json         V   -
webhook-list-csv          V   -
webhook-detail            Vh  -
webhook-deliveries-json   Vh  -
webhook-deliveries-csv    Vh  -
webhook-new               A   A
webhook-pause             -   Ah
webhook-test              -   Ah
webhook-resume            Ah  Ah
webhook-rotate            Ah  Ah
webhook-replay            Ah  Ah
webhook-delete            Ah  Ah
delivery-replay           -   Ah
"""
# URLs whose access does not depend on a role, each with the reason.
OPEN = {
    "favicon": "a public image",
    "healthz": "a probe",
    "readyz": "a probe",
    "metrics": "behind METRICS_TOKEN",
    "login": "before the login",
    "login-once": "the link is the permission",
    "login-code": "between password and code",
    "logout": "ends the caller's own session",
    "oidc-login": "before the login",
    "oidc-callback": "before the login",
    "preferences": "a cookie of the browser",
    "sessions-end": "the caller's own sessions; leads to the login",
    "problem-list": "documentation",
    "problem-detail": "documentation",
    "documentation": "documentation",
    "documentation-root": "documentation",
}
LEAST = {"V": Role.VIEWER, "E": Role.EDITOR, "A": Role.ADMIN}
ROLES = (Role.VIEWER, Role.EDITOR, Role.ADMIN)


def read_table() -> dict[tuple[str, str], str]:
    """The cell of each URL and method."""
    rows = [line.split() for line in TABLE.strip().splitlines()]
    return {
        (name, method): cell
        for name, *cells in rows
        for method, cell in zip(("GET", "POST"), [*cells, "-"], strict=False)
        if cell != "-"
    }


def list_methods(view: Any) -> set[str]:
    answer = view(RequestFactory().generic("BREW", "/"))
    assert answer.status_code == 405, view
    return {"GET", "POST"} & set(re.split(r",\s*", answer["Allow"]))


def patterns() -> dict[str, URLPattern]:
    """The URL patterns by name: of each name, the pattern with the most parameters."""
    found = sorted(urlpatterns, key=lambda pattern: pattern.pattern.regex.groups)
    return {pattern.name: pattern for pattern in found}


@pytest.fixture
def names(alice: Person, bob: Person) -> dict[str, Any]:
    """The parameters of the URLs: one resource of each kind in the workspace acme."""
    fill(alice)
    make_token(alice)
    member = Membership.objects.get(user=bob.user, workspace=alice.workspace)
    return {
        "dispatch_id": Dispatch.objects.earliest("pk").public_id,
        "member_id": member.pk,
        "token_id": ApiToken.objects.filter(workspace=alice.workspace).latest("pk").pk,
        "view_id": SavedView.objects.earliest("pk").pk,
        "delivery_id": WebhookDelivery.objects.earliest("pk").public_id,
        "pk": AuditRow.objects.latest("pk").pk,
        "session_id": "x",
        "namespace": "team",
        "name": "team",
        "key": "global",
        "compaction_id": "c1",
        "revert_id": "rv1",
        "webhook_id": "hook1",
        "kind": "providers",
        "record_id": "openai",
        "thread_id": "t1",
        "seq": 1,
        "piece": "0",
        "revision": 1,
        "action": "cancel",
    }


def url_of(pattern: URLPattern, names: dict[str, Any]) -> str:
    own = {"threa": "t1", "ticke": "tk1"}.get(pattern.name[:5], "r1")
    values = {name: {**names, "public_id": own}[name] for name in pattern.pattern.regex.groupindex}
    url: str = reverse(f"web:{pattern.name}", kwargs=values)
    return url


def call(client: Client, method: str, url: str) -> str:
    """The status of the response, or "login" for a redirect to the login page. The changes are rolled back."""
    cookies = client.cookies.copy()
    with transaction.atomic():
        answer = client.generic(method, url)
        transaction.set_rollback(True)
    client.cookies = cookies
    at_login = answer.status_code == 302 and answer["Location"].startswith(reverse("web:login"))
    return "login" if at_login else str(answer.status_code)


def find_wrong(cell: str, statuses: dict[str, str]) -> list[str]:
    """The callers that got another response than the cell of the table requires."""
    least = LEAST[cell[0]]
    wrong = [] if statuses["anonymous"] == "login" else ["anonymous"]
    for role in ROLES:
        refused = statuses[role] in ("login", "403") or statuses[role] >= "500"
        expected = not refused if role.covers(least) else statuses[role] == "403"
        if not expected:
            wrong.append(role)
    hidden = statuses["foreign"] == "404" and statuses[Role.ADMIN] != "404"
    return wrong if hidden == cell.endswith("h") else [*wrong, "foreign"]


@pytest.mark.timeout(1800)
def test_page__every_url_and_role__has_the_status_of_the_table(
    viewer: Client,
    editor: Client,
    admin: Client,
    stranger: Client,
    client: Client,
    names: dict[str, Any],
) -> None:
    callers = {
        Role.VIEWER: viewer,
        Role.EDITOR: editor,
        Role.ADMIN: admin,
        "foreign": stranger,
        "anonymous": client,
    }
    wrong = {}
    for (name, method), cell in read_table().items():
        url = url_of(patterns()[name], names)
        statuses = {who: call(browser, method, url) for who, browser in callers.items()}
        if find_wrong(cell, statuses):
            wrong[f"{method} {name}"] = statuses
    assert sorted(f"{url}: {statuses}" for url, statuses in wrong.items()) == []


def test_table__every_url_and_method__has_a_row() -> None:
    offered = {
        (pattern.name, method)
        for pattern in urlpatterns
        if pattern.name not in OPEN
        for method in list_methods(pattern.callback)
    }
    assert offered - read_table().keys() == set()
    assert read_table().keys() - offered == set()
    assert OPEN.keys() <= patterns().keys()


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS.keys())
def test_tool__each__has_the_role_of_its_operation(tool: Any) -> None:
    """Tools call the API with the caller's token (tests/mcp/test_tools.py), so its table applies."""
    operation = tool.operation
    rows = [
        row for row in OPERATIONS if row.path == operation.path and row.method == operation.method
    ]
    assert rows != []
    permitted = [role for role in ROLES if any(row.may[role.value] for row in rows)]
    # A batch that only reads needs a lower role than the tool, which is for writes, too.
    assert tool.role == (Role.EDITOR if tool.name == "batch" else permitted[0])
    assert tool.role in permitted


def test_commands__each__is_run_by_operators_only() -> None:
    """A user who can run a command has access to the database. So no page, operation or job runs one."""
    folders = ("api", "web", "rest", "mcp", "protocols", "services", "streams", "tasks")
    calling = [
        path.name
        for folder in folders
        for path in (BASE_DIR / "state_admin" / folder).rglob("*.py")
        if "call_command" in path.read_text(encoding="utf-8")
    ]
    assert calling == []
