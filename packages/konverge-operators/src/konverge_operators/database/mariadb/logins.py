"""Logins of the application, as statements. A statement holds a hash, never a password: it may be logged."""

from __future__ import annotations

from typing import Final

from konverge_operators.database.engine import Login
from konverge_operators.database.mariadb.archive.passwords import password_hash

__all__ = ["alternate_of", "create_login", "invalidate_login"]

_SUFFIX: Final = "_alternate"
_LONGEST: Final = 80


def alternate_of(owner: str) -> str:
    """Return the second login of the application; both are valid during a rotation."""
    return owner[: _LONGEST - len(_SUFFIX)] + _SUFFIX


def create_login(login: Login, database: str) -> str:
    """Return the statements that create a login with the rights of the owner, or change its password."""
    user, pattern = f"'{login.username}'@'%'", database.replace("_", "\\_")
    password = f"IDENTIFIED BY PASSWORD '{password_hash(login.password)}'"
    return (
        f"CREATE USER IF NOT EXISTS {user} {password};\n"
        f"GRANT ALL PRIVILEGES ON `{pattern}`.* TO {user};\n"
        f"ALTER USER {user} {password} ACCOUNT UNLOCK;\n"
    )


def invalidate_login(username: str) -> str:
    """Return the statement that makes a login invalid. The user stays: views and procedures may be its own."""
    return f"ALTER USER IF EXISTS '{username}'@'%' ACCOUNT LOCK;\n"
