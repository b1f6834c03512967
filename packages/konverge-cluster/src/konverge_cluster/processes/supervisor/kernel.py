"""System calls that Python 3.11 lacks: prctl, unshare, setns, mount."""

from __future__ import annotations

import ctypes
import os
from typing import Final

__all__ = [
    "BIND",
    "MOUNT_NAMESPACE",
    "PID_NAMESPACE",
    "PRIVATE",
    "READ_ONLY",
    "RECURSIVE",
    "REMOUNT",
    "USER_NAMESPACE",
    "die_with_parent",
    "mount",
    "set_subreaper",
    "setns",
    "unshare",
]

MOUNT_NAMESPACE: Final = 0x00020000
USER_NAMESPACE: Final = 0x10000000
PID_NAMESPACE: Final = 0x20000000

READ_ONLY: Final = 1
REMOUNT: Final = 32
BIND: Final = 4096
RECURSIVE: Final = 16384
PRIVATE: Final = 1 << 18

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_SIGKILL: Final = 9

_libc: Final = ctypes.CDLL(None, use_errno=True)


def set_subreaper() -> None:
    """Become the parent of every orphan among the descendants, so that none of them can escape."""
    _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def die_with_parent() -> None:
    """Die by SIGKILL when the parent dies; call it after a change of uid, which clears this."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0), "prctl")


def unshare(flags: int) -> None:
    """Move this process (of a PID namespace: its next child) into new namespaces."""
    _check(_libc.unshare(flags), "unshare")


def setns(descriptor: int, flag: int) -> None:
    """Move this process (of a PID namespace: its next child) into the namespace of a descriptor."""
    _check(_libc.setns(descriptor, flag), "setns")


def mount(source: str, target: str, file_system: str = "", flags: int = 0, options: str = "") -> None:
    """Mount a file system, or bind a path to another one."""
    result = _libc.mount(
        source.encode(), target.encode(), file_system.encode() or None, ctypes.c_ulong(flags), options.encode() or None
    )
    _check(result, f"mount {target}")


def _check(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
