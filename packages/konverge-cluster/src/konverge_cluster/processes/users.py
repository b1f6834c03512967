"""The user of a container. Nothing runs as root."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["NOBODY", "RefusedUser", "User", "passwd_with", "user_of"]

NOBODY: Final = 65534
"""The user of containers that name none, when the runtime is started as root."""


class RefusedUser(Exception):
    """A container asks for a user that it does not get."""


@dataclass(frozen=True)
class User:
    """The ids of a container; `uid` None keeps the user that started the runtime."""

    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] = ()


def user_of(
    pod_context: Mapping[str, Any], context: Mapping[str, Any], *, image_user: int | None, default: int
) -> User:
    """Return the user of a container from its security context, that of its pod and its image.

    Raises: RefusedUser for root.
    """
    merged = {**pod_context, **context}
    uid = merged.get("runAsUser", image_user)
    if uid == 0:
        raise RefusedUser("container has runAsUser 0, but process nodes run nothing as root: set another runAsUser")
    if os.getuid() != 0:
        return User()
    uid = default if uid is None else uid
    gid = merged.get("runAsGroup") or uid
    groups = {gid, *(pod_context.get("supplementalGroups") or ())}
    if pod_context.get("fsGroup") is not None:
        groups.add(pod_context["fsGroup"])
    return User(uid, gid, tuple(sorted(groups)))


def passwd_with(uid: int, gid: int) -> str | None:
    """Return a passwd file with an entry for a uid; None if this machine's has one."""
    try:
        pwd.getpwuid(uid)
    except KeyError:
        with open("/etc/passwd", encoding="utf-8", errors="surrogateescape") as file:
            present = file.read()
        return f"{present.rstrip()}\ncontainer:x:{uid}:{gid}:container:/tmp:/bin/sh\n"
    return None
