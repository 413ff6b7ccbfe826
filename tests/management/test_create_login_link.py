"""manage.py create_login_link."""

from __future__ import annotations

import io

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import Client

from state_admin.domain.access import Role
from state_admin.models import AuditRow, LoginLink, User, Workspace
from state_admin.services.bootstrap import ensure_first_run
from state_admin.services.workspaces import add_member, ensure_workspace

pytestmark = pytest.mark.django_db


def create(user: str) -> str:
    out = io.StringIO()
    call_command("create_login_link", "--user", user, stdout=out)
    return out.getvalue().strip()


def test_create_login_link__member__signs_in_once(client: Client) -> None:
    ensure_first_run()
    url = create("admin")
    assert url.startswith(f"{settings.SITE_URL}/login/once/")
    path = url.removeprefix(settings.SITE_URL)
    assert client.post(path).status_code == 302
    assert client.get("/").status_code == 200
    assert Client().post(path).status_code == 410


def test_create_login_link__member_of_two_workspaces__leaves_an_audit_row_in_each() -> None:
    ensure_first_run()
    other, _ = ensure_workspace("other")
    add_member(workspace=other, user=User.objects.get(), role=Role.VIEWER)
    before = AuditRow.objects.filter(action="member.link").count()
    create("admin")
    rows = AuditRow.objects.filter(action="member.link").order_by("pk")[before:]
    assert {row.workspace_id for row in rows} == set(Workspace.objects.values_list("pk", flat=True))
    assert {(row.key, row.actor_kind, row.actor_name) for row in rows} == {
        ("admin", "system", "operator")
    }


def test_create_login_link__user_cannot_sign_in__is_an_error() -> None:
    User.objects.create(username="stranger")
    ensure_first_run()
    User.objects.filter(username="admin").update(is_active=False)
    links = LoginLink.objects.count()
    for name in ("nobody", "stranger", "admin"):
        with pytest.raises(CommandError, match=f"^active member not found: {name}$"):
            create(name)
    assert LoginLink.objects.count() == links


def test_create_login_link__unknown_name__error_names_the_admins() -> None:
    ensure_first_run()
    viewer = User.objects.create(username="viewer")
    add_member(workspace=Workspace.objects.get(), user=viewer, role=Role.VIEWER)
    with pytest.raises(
        CommandError, match=r"^active member not found: nobody\. Active admins: admin$"
    ):
        create("nobody")
