"""Codes of authenticator apps, and recovery codes. Imported only if LOGIN_TOTP is not off.

allauth creates and checks secrets and codes. Its throttle and its record of used codes are in a
cache, which is separate in each process. This module stores them in the row of the authenticator,
under its lock, so that a code works only once (docs/adr/0014).
"""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from allauth.core.internal.cryptokit import compare_user_code
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal import auth as totp
from django.conf import settings
from django.db import transaction

from state_admin.domain.access import Actor, Role
from state_admin.models import Membership, User

from . import journal
from .actors import actors_of_user, require, system_actor
from .config_secrets import Rotation
from .encryption import Encrypted, InvalidCiphertext, UnknownKey, decrypt, encrypt, newest_key_id
from .errors import Conflict, Forbidden, Invalid, NotFound, RateLimited, Unreadable
from .members import find_member, guard_account

_PURPOSE = "commonhold.totp"
MOST_FAILURES = 5
WINDOW_SECONDS = 15 * 60

_Type = Authenticator.Type


@dataclass(frozen=True)
class State:
    """The authenticator of a user. `enrolled_at` None: there is none."""

    enrolled_at: datetime | None
    codes_left: int = 0


@dataclass(frozen=True)
class EnrolmentSecret:
    """A new secret for an app: as text in groups of four, and as a QR code (an SVG in a data URL,
    which the CSP permits in an <img>)."""

    text: str
    image: str


class EncryptingAdapter(DefaultMFAAdapter):
    """The adapter that allauth calls (MFA_ADAPTER): encrypts the secrets."""

    def encrypt(self, text: str) -> str:
        return encrypt(_PURPOSE, text).text

    def decrypt(self, encrypted_text: str) -> str:
        try:
            return decrypt(_PURPOSE, Encrypted.of(encrypted_text))
        except (UnknownKey, InvalidCiphertext):
            raise Unreadable(
                "the authenticator of this account cannot be decrypted",
                hint="Its encryption key is not in CONFIG_SECRET_KEYS, SECRET_KEY or "
                "SECRET_KEY_FALLBACKS. An admin can reset the authenticator under Members.",
            ) from None

    def get_totp_issuer(self) -> str:
        return "Commonhold"


def is_enrolled(user: User) -> bool:
    return bool(_devices(user, _Type.TOTP).exists())


def enrolled_among(user_ids: Sequence[int]) -> set[int]:
    devices = Authenticator.objects.filter(user__in=user_ids, type=_Type.TOTP)
    return set(devices.values_list("user_id", flat=True))


def find_state(user: User) -> State:
    devices = {device.type: device for device in Authenticator.objects.filter(user=user)}
    if _Type.TOTP not in devices:
        return State(None)
    codes = devices.get(_Type.RECOVERY_CODES)
    codes_left = len(RecoveryCodes(codes).get_unused_codes()) if codes else 0
    return State(devices[_Type.TOTP].created_at, codes_left)


def make_secret() -> str:
    return str(totp.generate_totp_secret())


def offer(user: User, secret: str) -> EnrolmentSecret:
    adapter = EncryptingAdapter()
    svg = adapter.build_totp_svg(adapter.build_totp_url(user, secret))
    image = base64.b64encode(svg.encode()).decode()
    groups = [secret[at : at + 4] for at in range(0, len(secret), 4)]
    return EnrolmentSecret(" ".join(groups), f"data:image/svg+xml;base64,{image}")


def enrol(*, actor: Actor, secret: str, code: str) -> list[str]:
    """Require codes of `secret` from now on. Returns the recovery codes. Raises Invalid if `code`
    is not its current code, and Conflict if there is an authenticator already."""
    with transaction.atomic():
        user = _lock_own_user(actor)
        if is_enrolled(user):
            raise Conflict("an authenticator is already set up", hint="Turn it off first.")
        counter = _counter_of(secret, code)
        if counter is None:
            raise Invalid(
                "the code is incorrect",
                hint="Wait for the next code, and check the clock of the device.",
            )
        device = totp.TOTP.activate(user, secret).instance
        # The code that proved the app is used up.
        device.data["used"] = counter
        device.save(update_fields=["data"])
        codes = _make_codes(user)
        _record(actor, "totp.enrol", user)
    return codes


def check_code(*, user: User, code: str) -> bool:
    """Whether `code` is a current code of the app or an unused recovery code. Each works once.
    Raises RateLimited after too many wrong codes, from any address."""
    with transaction.atomic():
        device = _devices(user, _Type.TOTP).select_for_update().first()
        if device is None:
            return False
        now = time.time()
        failures = [at for at in device.data.get("failures", []) if at > now - WINDOW_SECONDS]
        if len(failures) >= MOST_FAILURES:
            raise RateLimited(
                "too many wrong codes",
                hint=f"Wait {WINDOW_SECONDS // 60} minutes, or ask an admin to reset it.",
                retry_after=WINDOW_SECONDS,
            )
        counter = _counter_of(EncryptingAdapter().decrypt(device.data["secret"]), code)
        used = device.data.get("used", -1)
        right = counter is not None and counter > used
        if right:
            device.data["used"] = counter
        elif counter is None:
            right = _use_recovery_code(user, code)
        device.data["failures"] = [] if right else [*failures, now]
        device.save(update_fields=["data"])
    return right


def remove(*, actor: Actor) -> None:
    """Remove the actor's own authenticator. Raises Forbidden if the deployment requires one."""
    if settings.LOGIN_TOTP == "required":
        raise Forbidden("this server requires an authenticator")
    with transaction.atomic():
        user = _lock_own_user(actor)
        gone, _ = Authenticator.objects.filter(user=user).delete()
        if gone:
            _record(actor, "totp.remove", user)


def renew_codes(*, actor: Actor) -> list[str]:
    """Create new recovery codes; the old ones become invalid. Raises NotFound if there is no
    authenticator."""
    with transaction.atomic():
        user = _lock_own_user(actor)
        # Locked, so that check_code does not find its recovery codes deleted.
        if _devices(user, _Type.TOTP).select_for_update().first() is None:
            raise NotFound("no authenticator is set up")
        codes = _make_codes(user)
        _record(actor, "totp.codes", user)
    return codes


def reset_member(*, actor: Actor, member_id: int, reason: str = "") -> Membership:
    """Remove the authenticator of a member who lost it. Raises Forbidden for one's own, which
    requires the password, for a member of other workspaces, because it protects those too, and for a
    superuser.
    Raises NotFound if there is none."""
    require(actor, Role.ADMIN)
    with transaction.atomic():
        member = find_member(actor, member_id)
        if actor.kind == "user" and actor.id == str(member.user.pk):
            raise Forbidden(
                "this is your own authenticator",
                hint="Turn it off under Sign-in methods, or ask another admin.",
            )
        guard_account(
            member,
            "The authenticator protects more than this workspace. Ask the operator of the server to"
            " reset it (reset_totp).",
        )
        reset(actor=actor, user=member.user, reason=reason)
    return member


def reset(*, actor: Actor, user: User, reason: str = "") -> None:
    """Remove the authenticator of a user. For operators with a shell; admins use reset_member."""
    with transaction.atomic():
        gone, _ = Authenticator.objects.filter(user=user).delete()
        if not gone:
            raise NotFound(f"no authenticator: {user.get_username()}")
        _record(actor, "totp.reset", user, reason)


def unreadable() -> Iterator[str]:
    """The authenticators and recovery codes that no configured key can decrypt. Changes nothing."""
    for device in Authenticator.objects.select_related("user").order_by("pk").iterator():
        try:
            _seal_anew(device)
        except (UnknownKey, InvalidCiphertext):
            yield f"{device.get_type_display()} of {device.user.get_username()}"


def rotate_secrets() -> Rotation:
    """Encrypt with the newest key the secrets of authenticators and recovery codes that have an
    older one, and count them. Safe to repeat and to interrupt, also while people sign in."""
    total, current, unreadable = 0, 0, list[str]()
    owners = Authenticator.objects.order_by("user_id").values_list("user_id", flat=True).distinct()
    for user_id in list(owners):
        with transaction.atomic():
            user = User.objects.select_for_update().get(pk=user_id)
            rotated = 0
            # The authenticator before its codes, like check_code.
            devices = Authenticator.objects.filter(user=user).order_by("-type", "pk")
            for device in devices.select_for_update():
                try:
                    changed = _seal_anew(device)
                except (UnknownKey, InvalidCiphertext):
                    unreadable.append(f"{user.get_username()}: {device.type}")
                    continue
                if changed:
                    device.save(update_fields=["data"])
                rotated += changed
                current += not changed
            # Those that accept writes: the audit log of a frozen workspace does not.
            actors = actors_of_user(user)
            if rotated and actors:
                _record(system_actor(actors[0].workspace_id, "operator"), "totp.rotate", user)
            total += rotated
    return Rotation(total, current, unreadable)


def _seal_anew(device: Authenticator) -> bool:
    """Encrypt the secrets of a device with the newest key. Returns whether one had another key.
    Raises UnknownKey or InvalidCiphertext if one cannot be decrypted."""
    newest = newest_key_id(_PURPOSE)
    changed = False

    def seal(text: str) -> str:
        nonlocal changed
        encrypted = Encrypted.of(text)
        plain = decrypt(_PURPOSE, encrypted)
        if encrypted.key_id == newest:
            return text
        changed = True
        return encrypt(_PURPOSE, plain).text

    sealed: dict[str, Any] = {
        name: seal(device.data[name]) for name in ("secret", "seed") if name in device.data
    }
    if (codes := device.data.get("migrated_codes")) is not None:
        sealed["migrated_codes"] = [seal(code) for code in codes]
    device.data |= sealed
    return changed


def _lock_own_user(actor: Actor) -> User:
    """The actor's user, locked, so that the second of two concurrent enrolments sees the first."""
    if actor.kind != "user":
        raise Forbidden("only users can sign in")
    return User.objects.select_for_update().get(pk=actor.id)


def _devices(user: User, kind: str) -> Any:
    return Authenticator.objects.filter(user=user, type=kind)


def _counter_of(secret: str, code: str) -> int | None:
    """The time step of `code`: the current one, the one before or the next."""
    for counter in totp.yield_hotp_counters_from_time():
        expected = totp.format_hotp_value(totp.hotp_value(secret, counter))
        if compare_user_code(actual=code, expected=expected):
            return int(counter)
    return None


def _use_recovery_code(user: User, code: str) -> bool:
    device = _devices(user, _Type.RECOVERY_CODES).first()
    return device is not None and bool(RecoveryCodes(device).validate_code(code))


def _make_codes(user: User) -> list[str]:
    _devices(user, _Type.RECOVERY_CODES).delete()
    return list(RecoveryCodes.activate(user).generate_codes())


def _record(actor: Actor, action: str, user: User, reason: str = "") -> None:
    journal.record(actor, [journal.Trace(action, key=user.get_username())], reason=reason)
