"""Passwords as the server stores them: a statement that holds such a hash may be logged."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

__all__ = ["fill_passwords", "password_hash"]

_NAMES: Final = ("SUPERUSER_PASSWORD", "REPLICATION_PASSWORD", "APPLICATION_PASSWORD")


def password_hash(password: str) -> str:
    """Return what the server stores of a password (mysql_native_password)."""
    return "*" + hashlib.sha1(hashlib.sha1(password.encode()).digest()).hexdigest().upper()


def fill_passwords(script: str, env: Mapping[str, str]) -> str:
    """Return a script with the hashes of the passwords that the environment has, for `$SUPERUSER_PASSWORD` etc."""
    for name in _NAMES:
        script = script.replace(f"${name}", password_hash(env[name]))
    return script
