"""Members: adding them, changing their role, ending their sessions, removing them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpResponse
from django.urls import path, reverse
from django.views.decorators.debug import sensitive_variables

from state_admin.contract import members as contract
from state_admin.domain.access import Role
from state_admin.models import Membership
from state_admin.services.errors import Conflict, Invalid
from state_admin.services.members import (
    add_member,
    change_role,
    end_member_sessions,
    find_member,
    remove_member,
    renew_link,
)
from state_admin.services.tokens import tokens_of_user
from state_admin.templatetags.ui import plural

from .actors import FORM, POST, page
from .confirm import PREVIEW, Confirm, ask, reason_of
from .creation import Creation, created_once, show_form
from .entry_undo import REFUSED
from .errors import sentences_of
from .htmx import Request, Undo, list_url_of_page, render_list, see_other, toast
from .lists import table_paths
from .paging import NEWEST, OLDEST, by_column
from .tables import Field, Orders, Table, choices_of, count_rows, matching

PAGE = 100
_ROLES = [role.value for role in Role]
_CREATION = Creation("Members", "web:member-list", "members", "New member", "Add member")
_ROLE_CHOICES = [
    (Role.VIEWER.value, "viewer: reads"),
    (Role.EDITOR.value, "editor: also writes state, threads, runs and decides"),
    (Role.ADMIN.value, "admin: also registers, deletes and manages"),
]
_TABLE = Table(
    "web:member-list",
    (
        Orders("Member", by_column("user__username", "name")),
        Orders("Joined", {"": OLDEST, "newest": NEWEST}),
        Orders("Role"),
        Orders("Actions"),
    ),
    search=Field("text", "Search names", placeholder="Search names"),
    menu=(Field("role", "Role", choices=choices_of(_ROLES)),),
)


class MemberForm(forms.Form):
    username = forms.CharField(
        label="Name",
        max_length=150,
        help_text="If the user does not exist, it is created, and you get a one-time login link to pass on.",
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "spellcheck": "false", "autofocus": True}
        ),
    )
    role = forms.ChoiceField(choices=_ROLE_CHOICES, initial=Role.VIEWER.value)


@page(methods=FORM, role=Role.ADMIN)
@created_once
@sensitive_variables("added")
def member_new(request: Request) -> HttpResponse:
    """The form. The response to its POST is the only page that shows the login link."""
    if request.method != "POST":
        return show_form(request, _CREATION, MemberForm())
    form = MemberForm(request.POST)
    if not form.is_valid():
        return show_form(request, _CREATION, form, status=422)
    cleaned = form.cleaned_data
    try:
        added = add_member(
            actor=request.actor, username=cleaned["username"], role=Role(cleaned["role"])
        )
    except (Invalid, Conflict) as problem:
        messages = [error["message"] for error in problem.data.get("errors", [])]
        form.add_error("username", " ".join([sentences_of(problem), *messages]))
        return show_form(request, _CREATION, form, status=422)
    name = added.membership.user.get_username()
    if not added.link:
        toast(request, f"{name} is now a member")
        return see_other(request, reverse("web:member-list"), part="members")
    return _show(request, _link(name, added.link))


def _link(name: str, secret: str) -> dict[str, Any]:
    address = settings.SITE_URL + reverse("web:login-once", args=[secret])
    return {"linked": name, "link": address}


def _filtered(request: Request, filters: dict[str, str]) -> QuerySet[Membership]:
    rows = Membership.objects.filter(workspace_id=request.actor.workspace_id)
    return matching(rows, filters, text="user__username__icontains", role="role")


def _find(request: Request, filters: dict[str, str], name: str) -> tuple[Sequence[Membership], str]:
    others = Membership.objects.filter(user=OuterRef("user")).exclude(pk=OuterRef("pk"))
    rows = _filtered(request, filters).select_related("user").annotate(elsewhere=Exists(others))
    return _TABLE.page(request, rows, PAGE, reverse(name), filters)


def _show(request: Request, created: dict[str, Any] | None = None) -> HttpResponse:
    filters, members, table = _TABLE.load(request, _find)
    enrolled: set[int] = set()
    if settings.LOGIN_TOTP != "off":
        # Needs the packages of requirements-login.txt.
        from state_admin.services.second_factors import enrolled_among

        enrolled = enrolled_among([row.user_id for row in members])

    context = {
        **table,
        "rows": members,
        "enrolled": enrolled,
        "roles": _ROLES,
        "me": request.user.pk,
        "count": count_rows(table, members, lambda: _filtered(request, filters), "member,members"),
        **(created or {}),
    }
    status = 201 if created else 200
    return render_list(
        request, "members/list.html", context, part="members", rows="member-table", status=status
    )


@page(methods=POST, role=Role.ADMIN)
def role(request: Request, member_id: int) -> HttpResponse:
    """Change the role of a member. An Undo also sends `was`, the role that it expects."""
    new_role, was = request.POST.get("role", ""), request.POST.get("was", "")
    for name in (new_role, was) if was else (new_role,):
        if name not in _ROLES:
            raise Invalid(f"unknown role: {name}")
    back = list_url_of_page(request, reverse("web:member-list"))
    old = find_member(request.actor, member_id).role
    if was and was != old:
        toast(request, REFUSED, kind="failed")
        return see_other(request, back, part="members")
    member = change_role(
        actor=request.actor, member_id=member_id, role=Role(new_role), expected=Role(old)
    )
    # A user who gave up the admin role could not use the Undo.
    lost = member.user.pk == request.user.pk
    undo = Undo(reverse("web:member-role", args=[member_id]), {"role": old, "was": member.role})
    offered = member.role != old and not (was or lost)
    toast(
        request,
        f"{member.user.get_username()} is now {member.role}",
        undo=undo if offered else None,
    )
    return see_other(request, back, part="members")


@page(methods=POST, role=Role.ADMIN)
@sensitive_variables("secret")
def link(request: Request, member_id: int) -> HttpResponse:
    secret = renew_link(actor=request.actor, member_id=member_id)
    name = find_member(request.actor, member_id).user.get_username()
    return _show(request, _link(name, secret))


@page(methods=FORM, role=Role.ADMIN)
def remove(request: Request, member_id: int) -> HttpResponse:
    back = list_url_of_page(request, reverse("web:member-list"))
    if request.method == "POST":
        removed = remove_member(
            actor=request.actor,
            member_id=member_id,
            revoke_tokens="revoke_tokens" in request.POST,
            reason=reason_of(request),
        )
        message = f"{removed.membership.user.get_username()} is no longer a member"
        if removed.revoked:
            message += f"; {plural(removed.revoked, 'token,tokens')} revoked"
        toast(request, message)
        return see_other(request, back, part="members")
    member = find_member(request.actor, member_id)
    name = member.user.get_username()
    created = tokens_of_user(request.actor, name)
    tokens = list(created[: PREVIEW + 1])
    total = created.count() if len(tokens) > PREVIEW else len(tokens)
    confirm = Confirm(
        title=f"Remove {name}?",
        verb="Remove member",
        back=back,
        lines=[
            f"{'You lose' if member.user.pk == request.user.pk else 'This member loses'} access to "
            f"this workspace at once: the role {member.role}.",
            "Earlier writes keep showing the member's name.",
        ],
        names_title=f"{name} created {plural(total, 'API token,API tokens')}, which "
        f"{'keeps' if total == 1 else 'keep'} working unless you revoke "
        f"{'it' if total == 1 else 'them'}:"
        if tokens
        else "",
        names=[f"{token.name}, {token.beginning}…" for token in tokens],
        total=total,
        checks=[("revoke_tokens", f"Also revoke {plural(total, 'API token,API tokens')}")]
        if tokens
        else [],
    )
    return ask(request, confirm, part="members")


@page(methods=FORM, role=Role.ADMIN)
def end_sessions(request: Request, member_id: int) -> HttpResponse:
    back = list_url_of_page(request, reverse("web:member-list"))
    user = find_member(request.actor, member_id).user
    name = user.get_username()
    if request.method == "POST":
        ended = end_member_sessions(
            actor=request.actor, member_id=member_id, reason=reason_of(request)
        )
        toast(request, f"{plural(ended, 'session,sessions')} of {name} ended")
        return see_other(request, back, part="members")
    confirm = Confirm(
        title=f"End the sessions of {name}?",
        verb="End sessions",
        back=back,
        lines=[
            "All browsers of this user are signed out, and unused login links stop working.",
            "The user can sign in again with the password."
            if user.has_usable_password()
            else "The user has no password and needs single sign-on or a new login link to sign in again.",
        ],
    )
    return ask(request, confirm, part="members")


urlpatterns = [
    path("members", page(role=Role.ADMIN)(_show), name="member-list"),
    path("members/+new", member_new, name="member-new"),
    *table_paths("members", _TABLE, _find, contract.Member.of, role=Role.ADMIN),
    path("members/<int:member_id>/role", role, name="member-role"),
    path("members/<int:member_id>/link", link, name="member-link"),
    path("members/<int:member_id>/remove", remove, name="member-remove"),
    path("members/<int:member_id>/sessions", end_sessions, name="member-sessions"),
]
