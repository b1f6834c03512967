"""Logins of the application, as statements for psql.

A statement holds a SCRAM verifier, never a password: what PostgreSQL logs or shows of it is worthless to a client.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

from konverge_operators.database.engine import Login

__all__ = ["alternate_of", "create_login", "invalidate_login", "scram_verifier"]

_ITERATIONS: Final = 4096
_SALT_BYTES: Final = 16
_IDENTIFIER_BYTES: Final = 63
_SUFFIX: Final = "_alternate"


def alternate_of(owner: str) -> str:
    """Return the second login of the application; both are valid during a rotation."""
    return owner[: _IDENTIFIER_BYTES - len(_SUFFIX)] + _SUFFIX


def create_login(login: Login, owner: str, salt: bytes) -> str:
    """Return the script that creates a login with the rights of the owner, or changes its password.

    What a login creates belongs to the owner, so that the next login can change it.
    """
    name, verifier = login.username, scram_verifier(login.password, salt)
    lines = [
        f"SELECT 'CREATE ROLE \"{name}\"' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{name}') \\gexec"
    ]
    if name != owner:
        lines += [f'GRANT "{owner}" TO "{name}";', f'ALTER ROLE "{name}" SET role TO "{owner}";']
    lines.append(f"ALTER ROLE \"{name}\" LOGIN PASSWORD '{verifier}';")
    return "\n".join(lines)


def invalidate_login(username: str) -> str:
    """Return the script that makes a login invalid. The role stays: it may own objects."""
    found = f"SELECT FROM pg_roles WHERE rolname = '{username}'"
    return f"SELECT 'ALTER ROLE \"{username}\" NOLOGIN PASSWORD NULL' WHERE EXISTS ({found}) \\gexec"


def scram_verifier(password: str, salt: bytes) -> str:
    """Return what PostgreSQL stores of a password (RFC 5803)."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ITERATIONS)
    stored = hashlib.sha256(_hmac(salted, b"Client Key")).digest()
    server = _hmac(salted, b"Server Key")
    return f"SCRAM-SHA-256${_ITERATIONS}:{_text(salt)}${_text(stored)}:{_text(server)}"


def _hmac(key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, hashlib.sha256).digest()


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
