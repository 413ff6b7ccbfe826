"""The secrets of the config registry: stored encrypted as long as a value names them, and decrypted
only to call a provider (docs/adr/0010). No interface returns one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from django.db import OperationalError, transaction
from django.db.models import QuerySet

from state_admin.domain import config, values
from state_admin.domain.config import Kind, Secret
from state_admin.models import ConfigSecret, Entry, Workspace, freezing_sql
from state_admin.models.workspace_copies_sql import StagedSecret

from . import encryption, journal
from .actors import system_actor
from .encryption import Encrypted, InvalidCiphertext, UnknownKey, decrypt, encrypt, newest_key_id
from .errors import NotFound, Unreadable

_PURPOSE = "commonhold.config.secret"
_BATCH = 500
# Where the record of a provider has its secret.
_API_KEY = "/api_key"


@dataclass(frozen=True)
class Rotation:
    """How many secrets were encrypted again, how many already had the newest key, and those that no
    configured key can decrypt (`workspace: the secret at …`, or `username: what`). `frozen`: the
    workspaces that refuse writes and have secrets with another key."""

    rotated: int
    current: int
    unreadable: list[str]
    frozen: list[str] = field(default_factory=list)


def find_live_record(workspace_id: int, kind: Kind, identity: str) -> Entry:
    """The entry of a record. Raises NotFound."""
    rows = Entry.objects.filter(namespace__workspace_id=workspace_id)
    row = rows.filter(namespace__name=kind.namespace, key=identity).live().first()
    if row is None:
        raise NotFound(f"config not found: {kind}/{identity}")
    return row


def find_provider_secret(*, workspace_id: int, provider_id: str) -> str | None:
    """The secret of a provider in plain text; None if none is set. Only for calls to that provider,
    never for a response. Raises NotFound for an unknown provider, and Unreadable if no key can
    decrypt it."""
    provider = find_live_record(workspace_id, Kind.PROVIDERS, provider_id)
    markers = config.markers(Kind.PROVIDERS, values.load(provider.value or "null"))
    marker = markers.get(_API_KEY)
    if not config.is_marker(marker):
        return None
    row = _rows().filter(entry=provider, public_id=marker["$secret"]).first()
    if row is None:
        raise Unreadable(
            f"the secret at {Kind.PROVIDERS.namespace}/{provider_id} {_API_KEY} no longer exists",
            hint="Write it again.",
        )
    return open_secret(row)


def keep_secrets(entry: Entry, kind: Kind, fresh: Sequence[Secret]) -> None:
    """Store the new secrets, and delete those that the value of the entry no longer names. The
    caller has locked the row of the entry, which is already written."""
    named = []
    if entry.value is not None:
        markers = config.markers(kind, values.load(entry.value))
        named = [marker["$secret"] for marker in markers.values() if config.is_marker(marker)]
    ConfigSecret.objects.filter(entry=entry).exclude(public_id__in=named).delete()
    ConfigSecret.objects.bulk_create(
        ConfigSecret(
            entry=entry,
            pointer=secret.pointer,
            public_id=secret.id,
            **encrypt(_PURPOSE, secret.plain, _place(entry, secret.pointer, secret.id))._asdict(),
        )
        for secret in fresh
        if secret.id in named
    )


def open_secret(row: ConfigSecret) -> str:
    """The plain text. Raises Unreadable if no configured key can decrypt it, or it was moved or
    altered."""
    address = f"{row.entry.namespace.name}/{row.entry.key} {row.pointer}"
    encrypted = Encrypted(row.key_id, bytes(row.ciphertext))
    try:
        return decrypt(_PURPOSE, encrypted, _place(row.entry, row.pointer, row.public_id))
    except UnknownKey:
        hint = (
            "Its encryption key is not configured. Restore the key in CONFIG_SECRET_KEYS "
            "or SECRET_KEY_FALLBACKS, or write the secret again."
        )
    except InvalidCiphertext:
        hint = "The ciphertext was modified or copied from another record. Write the secret again."
    raise Unreadable(f"the secret at {address} cannot be decrypted", hint=hint)


def unreadable() -> Iterator[str]:
    """The secrets that no configured key can decrypt, with their workspaces. Decrypts every one."""
    for row in _rows().iterator(chunk_size=_BATCH):
        try:
            open_secret(row)
        except Unreadable as problem:
            yield f"{row.entry.namespace.workspace.slug}: {problem.detail}"


def rotate_secrets() -> Rotation:
    """Encrypt with the newest key every secret that has another one. Safe to repeat and to
    interrupt."""
    newest = newest_key_id(_PURPOSE)
    current = ConfigSecret.objects.filter(key_id=newest).count()
    rotated, unreadable, frozen = 0, list[str](), list[str]()
    workspaces = Workspace.objects.present().order_by("pk")
    for workspace_id, slug in workspaces.values_list("pk", "slug"):
        try:
            for ids in _old_ones(workspace_id, newest):
                done, lines = _rotate(workspace_id, ids)
                rotated += done
                unreadable += lines
        except OperationalError as error:
            if not freezing_sql.is_refusal(error):
                raise
            frozen.append(slug)
    return Rotation(rotated, current, unreadable, frozen)


def _rotate(workspace_id: int, ids: Sequence[int]) -> tuple[int, list[str]]:
    """Encrypt these secrets with the newest key. Returns how many, and those that no key decrypts."""
    done, unreadable = 0, list[str]()
    with transaction.atomic():
        rows = _rows().filter(pk__in=ids).select_for_update(of=("self",)).order_by("pk")
        for row in rows:
            try:
                plain = open_secret(row)
            except Unreadable as problem:
                unreadable.append(f"{row.entry.namespace.workspace.slug}: {problem.detail}")
                continue
            place = _place(row.entry, row.pointer, row.public_id)
            row.key_id, row.ciphertext = encrypt(_PURPOSE, plain, place)
            row.save(update_fields=["ciphertext", "key_id"])
            done += 1
        if done:
            trace = journal.Trace("config.rotate", detail={"secrets": done})
            journal.record(system_actor(workspace_id, "operator"), [trace])
    return done, unreadable


def import_secrets(
    secrets: Sequence[StagedSecret], *, workspace_id: int, source_id: int
) -> list[str]:
    """Encrypt secrets of the workspace `source_id`, maybe of another server, for their copies in
    `workspace_id`. Returns the addresses of those that are not in the file or that no configured key
    can decrypt. The caller owns the transaction and writes the audit."""
    missing = []
    entries = Entry.objects.filter(namespace__workspace_id=workspace_id)
    entries = entries.select_related("namespace")
    for secret in secrets:
        entry = entries.get(pk=secret.entry_id)
        plain = _open_staged(secret, entry, source_id)
        if plain is None:
            missing.append(f"{entry.namespace.name}/{entry.key} {secret.pointer}")
            continue
        place = _place(entry, secret.pointer, secret.public_id)
        ConfigSecret.objects.create(
            entry=entry,
            pointer=secret.pointer,
            public_id=secret.public_id,
            set_at=secret.set_at,
            **encrypt(_PURPOSE, plain, place)._asdict(),
        )
    return missing


def seal_for(rows: Sequence[int], *, workspace_id: int) -> dict[int, Encrypted]:
    """These secrets, encrypted for their copies in the workspace `workspace_id`, by their numbers.
    Raises Unreadable."""
    return {
        row.pk: encrypt(
            _PURPOSE,
            open_secret(row),
            _place(row.entry, row.pointer, row.public_id, workspace_id=workspace_id),
        )
        for row in _rows().filter(pk__in=rows)
    }


def read_plain(rows: Sequence[int]) -> dict[int, str]:
    """The plain text of these secrets, by their numbers. Raises Unreadable."""
    return {row.pk: open_secret(row) for row in _rows().filter(pk__in=rows)}


def key_ids() -> list[str]:
    """The ids of the keys that decrypt."""
    return encryption.key_ids(_PURPOSE)


def _open_staged(secret: StagedSecret, entry: Entry, source_id: int) -> str | None:
    if secret.ciphertext is None:
        return None
    encrypted = Encrypted(secret.key_id, secret.ciphertext)
    try:
        place = _place(entry, secret.pointer, secret.public_id, workspace_id=source_id)
        return decrypt(_PURPOSE, encrypted, place)
    except (UnknownKey, InvalidCiphertext):
        return None


def _old_ones(workspace_id: int, newest: str) -> Iterator[list[int]]:
    rows = ConfigSecret.objects.filter(entry__namespace__workspace_id=workspace_id)
    rows = rows.exclude(key_id=newest).order_by("pk")
    after = 0
    while ids := list(rows.filter(pk__gt=after).values_list("pk", flat=True)[:_BATCH]):
        yield ids
        after = ids[-1]


def _rows() -> QuerySet[ConfigSecret]:
    return ConfigSecret.objects.select_related("entry__namespace__workspace")


def _place(entry: Entry, pointer: str, public_id: str, *, workspace_id: int | None = None) -> bytes:
    """The associated data of a ciphertext: moved to another place, it cannot be decrypted.
    `workspace_id`: that of the workspace for which it was encrypted, if it is another one."""
    namespace = entry.namespace
    owner = namespace.workspace_id if workspace_id is None else workspace_id
    return json.dumps([owner, namespace.name, entry.key, pointer, public_id]).encode()
