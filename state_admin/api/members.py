"""Members of the workspace: /members."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpResponse
from django.urls import reverse

from state_admin.contract import members as contract
from state_admin.domain.access import Role
from state_admin.models import Membership
from state_admin.rest.bodies import answer, answer_once, no_content
from state_admin.rest.endpoint import Endpoint, handles, row_id
from state_admin.rest.pagination import answer_rows
from state_admin.services import members


@handles(contract.LIST_MEMBERS)
def list_members(call: Endpoint) -> HttpResponse:
    rows = Membership.objects.visible_to(call.actor).select_related("user")
    return answer_rows(call, rows, contract.Member.of)


@handles(contract.ADD_MEMBER)
def add_member(call: Endpoint) -> HttpResponse:
    body = call.body(contract.NewMember)
    added = members.add_member(**call.author, username=body.username, role=Role(body.role))
    return _invite(added.membership, added.link)


@handles(contract.GET_MEMBER)
def get_member(call: Endpoint, member_id: str) -> HttpResponse:
    return answer(contract.Member.of(members.find_member(call.actor, row_id("member", member_id))))


@handles(contract.CHANGE_MEMBER)
def change_member(call: Endpoint, member_id: str) -> HttpResponse:
    member = members.change_role(
        **call.author,
        member_id=row_id("member", member_id),
        role=Role(call.body(contract.MemberChange).role),
    )
    return answer(contract.Member.of(member))


@handles(contract.REMOVE_MEMBER)
def remove_member(call: Endpoint, member_id: str) -> HttpResponse:
    removed = members.remove_member(
        **call.author,
        member_id=row_id("member", member_id),
        revoke_tokens=call.query.revoke_tokens,
    )
    if not call.dry_run:
        return no_content()
    return answer(contract.MemberRemoval(revoked_tokens=removed.revoked))


@handles(contract.INVITE_MEMBER)
def invite_member(call: Endpoint, member_id: str) -> HttpResponse:
    member = members.find_member(call.actor, row_id("member", member_id))
    link = members.renew_link(**call.author, member_id=member.pk)
    return _invite(member, link)


@handles(contract.END_SESSIONS)
def end_member_sessions(call: Endpoint, member_id: str) -> HttpResponse:
    ended = members.end_member_sessions(**call.author, member_id=row_id("member", member_id))
    return answer(contract.EndedSessions(ended=ended))


def _invite(member: Membership, link: str) -> HttpResponse:
    url = settings.SITE_URL + reverse("web:login-once", args=[link]) if link else None
    document = contract.Member.of(member)
    return answer_once(
        contract.Invitation(member=document, login_url=url),
        kept=contract.Invitation(member=document, login_url=None),
    )
