"""The pages of access: members, one's own sessions, rotation, and the explanation of
permissions."""

from __future__ import annotations

import json
import re

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from state_admin.domain.access import Role
from state_admin.models import ApiToken, AuditRow, Membership, UserSession
from state_admin.services.actors import actor_of_token
from state_admin.services.logins import set_password
from state_admin.services.members import add_member
from state_admin.services.tokens import create_token
from tests.builders import Person, make_person, make_token
from tests.web.conftest import CheckQueries
from tests.web.test_threads import htmx, page
from tests.web.test_tokens import form_id

PASSWORD = "correct horse battery staple"


def member(name: str) -> int:
    return Membership.objects.get(user__username=name, workspace__slug="acme").pk


def test_members__listed__with_roles_and_sign_in_methods(
    admin: Client, bob: Person, mallory: Person
) -> None:
    shown = page(admin, "/members")
    assert "<strong>bob</strong>" in shown
    assert "mallory" not in shown
    assert "<option selected>viewer</option>" in shown


def test_members__account_beyond_the_workspace__offers_no_login_link(
    admin: Client, bob: Person, mallory: Person
) -> None:
    accounts = get_user_model().objects.filter(username="bob")
    accounts.update(password="!")
    assert page(admin, "/members").count("New login link") == 2  # alice has no password, too
    accounts.update(is_superuser=True)
    assert page(admin, "/members").count("New login link") == 1
    accounts.update(is_superuser=False)
    add_member(actor=mallory.actor, username="bob", role=Role.VIEWER)
    assert page(admin, "/members").count("New login link") == 1


def test_member__added__link_is_shown_once_and_works(admin: Client, client: Client) -> None:
    response = admin.post("/members/+new", {"username": "carol", "role": "editor"})
    assert response.status_code == 201
    found = re.search(r"/login/once/[\w-]+", response.content.decode())
    assert found
    assert "no-store" in response["Cache-Control"]
    assert found[0] not in page(admin, "/members")
    client.post(found[0])
    assert "editor of acme" in page(client, "/")


def test_member_form__sent_twice__does_not_hide_the_link(admin: Client) -> None:
    form = {"username": "carol", "role": "editor", "form_id": form_id(admin, "/members/+new")}
    assert "/login/once/" in admin.post("/members/+new", form).content.decode()
    again = admin.post("/members/+new", form, headers=htmx("members"))
    assert (again.status_code, again["HX-Retarget"]) == (409, "#problem")


def test_member__known_user__is_added_without_a_link(admin: Client, mallory: Person) -> None:
    response = admin.post("/members/+new", {"username": "mallory", "role": "viewer"})
    assert response["Location"] == "/members"


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"username": "bob", "role": "viewer"}, "Already a member: bob"),
        ({"username": "no good", "role": "viewer"}, "The user name is not valid"),
        ({"username": "", "role": "viewer"}, "required"),
        ({"username": "x", "role": "emperor"}, "emperor"),
    ],
)
def test_member__invalid_form__is_reported_at_the_field(
    form: dict[str, str], said: str, admin: Client, bob: Person
) -> None:
    response = admin.post("/members/+new", form)
    assert response.status_code == 422
    assert said in response.content.decode()


def test_member__role_changed__then_removed(admin: Client, bob: Person) -> None:
    admin.post(f"/members/{member('bob')}/role", {"role": "editor"})
    assert Membership.objects.get(pk=member("bob")).role == "editor"
    assert "This member loses access" in page(admin, f"/members/{member('bob')}/remove")
    admin.post(f"/members/{member('bob')}/remove", {"reason": "left"})
    assert not Membership.objects.filter(user=bob.user).exists()
    assert AuditRow.objects.filter(action="member.remove", reason="left").exists()


def test_member__removed_with_tokens__revokes_them_only_if_checked(
    admin: Client, alice: Person
) -> None:
    carol = make_person("carol", "acme", Role.ADMIN)
    path = f"/members/{member('carol')}/remove"
    assert 'name="revoke_tokens"' not in page(admin, path)
    secrets = [
        create_token(actor=carol.actor, name=name, role=Role.VIEWER)[1] for name in ("ci", "<cd>")
    ]
    shown = page(admin, path)
    assert "carol created 2 API tokens, which keep working unless you revoke them:" in shown
    assert "Also revoke 2 API tokens" in shown
    assert "&lt;cd&gt;, ch_" in shown
    admin.post(path)
    assert all(map(actor_of_token, secrets))
    admin.post("/members/+new", {"username": "carol", "role": "admin"})
    admin.post(f"/members/{member('carol')}/remove", {"revoke_tokens": "on", "reason": "left"})
    assert not any(map(actor_of_token, secrets))
    assert AuditRow.objects.filter(action="token.revoke", reason="left").count() == 2
    assert "carol is no longer a member; 2 tokens revoked" in page(admin, "/members")


def test_member__last_admin__cannot_be_removed(admin: Client) -> None:
    response = admin.post(f"/members/{member('alice')}/remove")
    assert response.status_code == 409
    assert "The last admin cannot be removed" in response.content.decode()


@pytest.mark.parametrize(
    "path", ["/members", "/members/{}/remove", "/members/{}/sessions", "/access"]
)
def test_members__other_roles__cannot_open_the_page(
    path: str, viewer: Client, editor: Client, stranger: Client, alice: Person
) -> None:
    path = path.format(member("alice"))
    assert viewer.get(path).status_code == 403
    assert editor.get(path).status_code == 403
    if "members/" in path:
        assert stranger.get(path).status_code == 404


@pytest.mark.parametrize("action", ["role", "link", "remove", "sessions"])
def test_members__post_by_other_roles__changes_nothing(
    action: str, viewer: Client, editor: Client, stranger: Client, alice: Person
) -> None:
    path, form = f"/members/{member('alice')}/{action}", {"role": "viewer"}
    assert viewer.post(path, form).status_code == 403
    assert editor.post(path, form).status_code == 403
    assert stranger.post(path, form).status_code == 404
    assert Membership.objects.get(pk=member("alice")).role == "admin"


def test_member__sessions_ended__is_signed_out_in_every_browser(
    admin: Client, viewer: Client, bob: Person
) -> None:
    assert viewer.get("/").status_code == 200
    assert "signed out" in page(admin, f"/members/{member('bob')}/sessions")
    admin.post(f"/members/{member('bob')}/sessions", {"reason": "lost laptop"})
    assert viewer.get("/").status_code == 302
    assert admin.get("/").status_code == 200


def log_in(client: Client, agent: str) -> None:
    form = {"username": "alice", "password": PASSWORD}
    client.post("/login", form, headers={"User-Agent": agent})


def test_sessions__own__are_listed_and_ended_singly_and_together(
    client: Client, alice: Person
) -> None:
    set_password(user=alice.user, password=PASSWORD)
    phone, office = Client(), Client()
    log_in(client, "Laptop <b>")
    log_in(phone, "Phone")
    log_in(office, "Office")
    shown = page(client, "/sessions")
    for said in ("Laptop &lt;b&gt;", "Phone", "Office", "this browser", "127.0.0.1"):
        assert said in shown
    for browser in (client, phone, office):
        assert browser.cookies["commonhold_session"].value not in shown
    found = re.findall(r"/sessions/([0-9a-f]{20})/end", shown)
    assert len(found) == 2
    client.post(f"/sessions/{found[0]}/end")
    outside = [browser.get("/sessions").status_code for browser in (phone, office)]
    assert sorted(outside) == [200, 302]
    asked = page(client, "/sessions/end")
    assert "You can sign in again with your password." in asked
    assert UserSession.objects.filter(user=alice.user).count() == 2
    assert client.post("/sessions/end", {"reason": "lost phone"})["Location"] == "/login"
    assert AuditRow.objects.filter(action="session.end", reason="lost phone").exists()
    assert [b.get("/sessions").status_code for b in (client, phone, office)] == [302] * 3


def test_sessions__user_without_password__are_ended_after_a_warning(
    admin: Client, alice: Person
) -> None:
    ends = f"/members/{member('alice')}/sessions"
    assert "You have no password" in page(admin, "/sessions/end")
    assert "The user has no password" in page(admin, ends)
    set_password(user=alice.user, password=PASSWORD)
    assert "again with the password" in page(alice.browser(), ends)


def test_sessions__of_another_user__cannot_be_ended(viewer: Client, alice: Person) -> None:
    alice.browser()
    assert viewer.post("/sessions/0123456789abcdef0123/end").status_code == 404
    assert UserSession.objects.filter(user=alice.user).exists()


def test_token__rotated__both_work_and_the_new_one_is_shown_once(
    admin: Client, alice: Person
) -> None:
    secret, _ = make_token(alice)
    old = ApiToken.objects.latest("pk")
    assert "keeps working" in page(admin, f"/tokens/{old.pk}/rotate")
    response = admin.post(f"/tokens/{old.pk}/rotate", {"overlap": "1h", "reason": "yearly"})
    assert response.status_code == 201
    found = re.search(r"ch_[0-9a-f]{12}_[0-9a-f]{64}", response.content.decode())
    assert found
    assert actor_of_token(secret)
    assert actor_of_token(found[0])
    shown = page(admin, "/tokens")
    assert found[0] not in shown
    assert "rotated" in shown
    assert f"/tokens/{old.pk}/rotate" not in shown
    assert admin.post(f"/tokens/{old.pk}/rotate", {"overlap": "1h"}).status_code == 409


def test_token__rotated_without_a_choice_or_by_others__is_refused(
    admin: Client, editor: Client, stranger: Client, alice: Person
) -> None:
    make_token(alice)
    path = f"/tokens/{ApiToken.objects.latest('pk').pk}/rotate"
    before = ApiToken.objects.count()
    assert admin.post(path, {"overlap": "forever"}).status_code == 422
    assert editor.post(path, {"overlap": "0"}).status_code == 403
    assert stranger.post(path, {"overlap": "0"}).status_code == 404
    assert ApiToken.objects.count() == before


def test_access__member_and_token__shows_result_and_reasons(
    admin: Client, alice: Person, bob: Person
) -> None:
    assert "Choose a member or a token" in page(admin, "/access")
    shown = page(admin, "/access?username=bob&namespace=team&key=global")
    for said in (
        "may read",
        "may not write",
        "bob is a member as viewer",
        "do not depend on the key",
    ):
        assert said in shown
    make_token(alice, Role.EDITOR, namespaces=["team_*"])
    token = ApiToken.objects.latest("pk")
    shown = page(admin, f"/access?token_id={token.pk}&namespace=other")
    assert "may not read" in shown
    assert "other is outside its grant" in shown


def test_access__config__only_admins_may_write(admin: Client, alice: Person) -> None:
    make_person("erin", "acme", Role.EDITOR)
    shown = page(admin, "/access?username=erin&namespace=config.models")
    assert "may not write" in shown
    assert "config.models is reserved: only admins can write to it" in shown
    assert "may write" in page(admin, "/access?username=alice&namespace=config.models")
    assert "may write" in page(admin, "/access?username=erin&namespace=notes")


@pytest.mark.parametrize("path", ["/members", "/access", "/sessions", "/members/{}/remove"])
def test_page__members__uses_a_bounded_number_of_queries(
    path: str, admin: Client, bob: Person, check_queries: CheckQueries
) -> None:
    name = path.strip("/").replace("/{}/", ", ")
    check_queries(name, admin, path.format(member("bob")))


@pytest.mark.parametrize(
    ("url", "part", "page_url", "list_url"),
    [
        ("/members/{bob}/role", "members", "/members?text=bob", "/members?text=bob"),
        ("/members/{bob}/sessions", "members", "/members?text=bob", "/members?text=bob"),
        ("/members/{bob}/remove", "members", "/members?text=bob", "/members?text=bob"),
        ("/members/{bob}/remove", "members", "/access?username=bob", "/members"),
        ("/tokens/{token}/revoke", "tokens", "/tokens?text=bob", "/tokens?text=bob"),
    ],
)
def test_action__keeps_the_filters_of_its_list(
    admin: Client, bob: Person, url: str, part: str, page_url: str, list_url: str
) -> None:
    url = url.format(bob=member("bob"), token=ApiToken.objects.get(name="bob's token").pk)
    here = {"HX-Current-URL": f"http://testserver{page_url}"}
    response = admin.post(url, {"role": "editor"}, headers=htmx(part) | here)
    assert json.loads(response["HX-Location"])["path"] == list_url
