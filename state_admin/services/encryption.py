"""Encrypts secrets that the server must read again, with AES-256-GCM (docs/adr/0010).

Each purpose has keys of its own, derived from CONFIG_SECRET_KEYS, SECRET_KEY and
SECRET_KEY_FALLBACKS: the first encrypts, all decrypt.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.crypto import salted_hmac

_NONCE_BYTES = 12


class UnknownKey(Exception):
    """No configured key has this id."""


class InvalidCiphertext(Exception):
    """The ciphertext was modified, or belongs to another place."""


class Encrypted(NamedTuple):
    """A ciphertext, and the id of its key."""

    key_id: str
    ciphertext: bytes

    @property
    def text(self) -> str:
        return f"{self.key_id}.{base64.urlsafe_b64encode(self.ciphertext).decode()}"

    @classmethod
    def of(cls, text: str) -> Encrypted:
        """What `text` was made from. InvalidCiphertext for any other text."""
        key_id, _, encoded = text.partition(".")
        try:
            return cls(key_id, base64.b64decode(encoded, b"-_", validate=True))
        except (binascii.Error, ValueError):
            raise InvalidCiphertext from None


def encrypt(purpose: str, plain: str, place: bytes = b"") -> Encrypted:
    """Encrypt `plain` with the newest key. `place` is the associated data: the ciphertext can only be
    decrypted with the same one."""
    secret = _secrets()[0]
    nonce = secrets.token_bytes(_NONCE_BYTES)
    ciphertext = nonce + _cipher(purpose, secret).encrypt(nonce, plain.encode(), place)
    return Encrypted(key_id(purpose, secret), ciphertext)


def decrypt(purpose: str, encrypted: Encrypted, place: bytes = b"") -> str:
    """The plain text. Raises UnknownKey or InvalidCiphertext."""
    matching = (each for each in _secrets() if key_id(purpose, each) == encrypted.key_id)
    secret = next(matching, None)
    if secret is None:
        raise UnknownKey
    nonce, rest = encrypted.ciphertext[:_NONCE_BYTES], encrypted.ciphertext[_NONCE_BYTES:]
    try:
        return _cipher(purpose, secret).decrypt(nonce, rest, place).decode()
    except (InvalidTag, ValueError):  # ValueError: too short for a nonce
        raise InvalidCiphertext from None


def newest_key_id(purpose: str) -> str:
    """The id of the key that `encrypt` uses."""
    return key_id(purpose, _secrets()[0])


def key_ids(purpose: str) -> list[str]:
    """The ids of all keys that `decrypt` uses."""
    return [key_id(purpose, secret) for secret in _secrets()]


def _secrets() -> list[str]:
    """What keys are derived from."""
    return [*settings.CONFIG_SECRET_KEYS, settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]


def _cipher(purpose: str, secret: str) -> AESGCM:
    derivation = HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose.encode())
    return AESGCM(derivation.derive(secret.encode()))


def key_id(purpose: str, secret: str) -> str:
    """Names a key without telling anything about it."""
    return salted_hmac(f"{purpose}.key", "", secret=secret, algorithm="sha256").hexdigest()[:16]
