"""Passwords as the server stores them: a statement that holds such a hash may be logged."""

from __future__ import annotations

import hashlib

__all__ = ["password_hash"]


def password_hash(password: str) -> str:
    """Return what the server stores of a password (mysql_native_password)."""
    return "*" + hashlib.sha1(hashlib.sha1(password.encode()).digest()).hexdigest().upper()
