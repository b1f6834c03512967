"""Signed JSON web tokens (JWT) with ES256, and the public key as a web key (JWK)."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any, Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from konverge.certificates import make_key

__all__ = ["ALGORITHM", "SigningKey", "unverified_claims"]

ALGORITHM: Final = "ES256"
_SIZE: Final = 32
_ECDSA: Final = ec.ECDSA(hashes.SHA256())


class SigningKey:
    """A private key that signs tokens, and verifies those that it signed.

    Promise: `key_id` is derived from the public key as on the real server, and does not reveal it.
    """

    def __init__(self) -> None:
        self._private = make_key()
        public = self._private.public_key()
        self._public = public
        digest = hashlib.sha256(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).digest()
        self.key_id = _encode(digest)

    def sign(self, claims: dict[str, Any]) -> str:
        """Return a token with these claims."""
        header = {"alg": ALGORITHM, "kid": self.key_id}
        text = f"{_encode(_json(header))}.{_encode(_json(claims))}"
        r, s = decode_dss_signature(self._private.sign(text.encode(), _ECDSA))
        return f"{text}.{_encode(r.to_bytes(_SIZE, 'big') + s.to_bytes(_SIZE, 'big'))}"

    def is_signed(self, token: str) -> bool:
        """Report whether this key signed a token."""
        text, _, signature = token.rpartition(".")
        try:
            raw = _decode(signature)
        except ValueError:
            return False
        if _header(token).get("alg") != ALGORITHM or len(raw) != 2 * _SIZE:
            return False
        r, s = int.from_bytes(raw[:_SIZE], "big"), int.from_bytes(raw[_SIZE:], "big")
        try:
            self._public.verify(encode_dss_signature(r, s), text.encode(), _ECDSA)
        except InvalidSignature:
            return False
        return True

    def is_named(self, token: str) -> bool:
        """Report whether a token names this key, or none."""
        return bool(_header(token).get("kid", self.key_id) == self.key_id)

    def web_key(self) -> dict[str, str]:
        """Return the public key as a web key."""
        numbers = self._public.public_numbers()
        x, y = (_encode(number.to_bytes(_SIZE, "big")) for number in (numbers.x, numbers.y))
        return {"use": "sig", "kty": "EC", "kid": self.key_id, "crv": "P-256", "alg": ALGORITHM, "x": x, "y": y}


def _header(token: str) -> dict[str, Any]:
    """Return the header of a token, {} when it cannot be decoded."""
    return _document(token.partition(".")[0]) or {}


def _document(text: str) -> dict[str, Any] | None:
    try:
        document = msgspec.json.decode(_decode(text))
    except (ValueError, msgspec.DecodeError):
        return None
    return document if isinstance(document, dict) else None


def unverified_claims(token: str) -> dict[str, Any] | None:
    """Return the claims of a token without checking its signature; None when it is not a token of this form."""
    parts = token.split(".")
    return _document(parts[1]) if len(parts) == 3 else None


def _json(value: dict[str, Any]) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    """Decode base64url without padding.

    Raises: ValueError.
    """
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
