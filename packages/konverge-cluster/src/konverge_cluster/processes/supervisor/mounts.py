"""The root directory of a container: a tmpfs with the directories of the host bound into it, and its volumes on top.

A path that the host lacks works too: the directories above it are created in the tmpfs, and their other entries are
bound one by one. Rules that hold here:

1. Nothing is created, changed or mounted on the host: everything happens in a mount namespace of the container.
2. A directory that others cannot enter (a home directory) shows only what the container needs of it.
3. /tmp is empty and private.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias

from konverge_cluster.processes.supervisor import kernel

__all__ = ["build_root", "mount_tmpfs", "unshare_mounts"]

Mount: TypeAlias = Mapping[str, Any]
Tree: TypeAlias = "dict[str, Tree | Mount]"
"""Mounts by the components of their paths."""

_PRIVATE: Final = ("/tmp",)
_PROC: Final = "/proc"
_LOCKED: Final = os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC | os.ST_NOATIME | os.ST_NODIRATIME


def unshare_mounts() -> None:
    """Enter a mount namespace of its own, from which nothing spreads to the host."""
    kernel.unshare(kernel.MOUNT_NAMESPACE)
    kernel.mount("none", "/", flags=kernel.PRIVATE | kernel.RECURSIVE)


def mount_tmpfs(path: str, *, size: int = 0, mode: int = 0o755) -> None:
    """Mount an empty file system in memory; `size` is its limit in bytes."""
    options = f"mode={mode:o}" + (f",size={size}" if size else "")
    kernel.mount("tmpfs", path, "tmpfs", options=options)


def build_root(root: str, mounts: Iterable[Mount]) -> None:
    """Build the root directory of a container below `root`: `mounts` have a source, a target and `readonly`."""
    tree: Tree = {}
    for one in sorted(mounts, key=lambda mount: str(mount["target"]).count("/")):
        _insert(tree, _components(one["target"]), one)
    mount_tmpfs(root)
    _populate("/", root, tree)
    _mount_proc(f"{root}{_PROC}")


def _components(path: str) -> list[str]:
    """Return the components of a path, with the symbolic links of the host resolved."""
    return [one for one in os.path.realpath(path).split("/") if one]


def _insert(tree: Tree, components: list[str], mount: Mount) -> None:
    for name in components[:-1]:
        child = tree.setdefault(name, {})
        if "target" in child:
            # A mount inside of another one: its directory exists there already, or is created in it.
            child = tree[name] = {"": child}
        tree = child  # type: ignore[assignment]
    tree[components[-1]] = mount


def _populate(host: str, new: str, tree: Tree) -> None:
    """Fill a new directory with the entries of one of the host and with the mounts of a tree."""
    for name in _visible_entries(host, tree):
        if name not in tree and not (host == "/" and f"/{name}" in (*_PRIVATE, _PROC)):
            _bind_entry(os.path.join(host, name), os.path.join(new, name))
    if host == "/":
        _create_private(new, tree)
    for name, child in tree.items():
        if name:
            _place(os.path.join(host, name), os.path.join(new, name), child)


def _visible_entries(host: str, tree: Tree) -> list[str]:
    if "" in tree or host in _PRIVATE:
        return []
    with suppress(OSError):
        if os.stat(host).st_mode & stat.S_IXOTH:
            return sorted(os.listdir(host))
    return []


def _create_private(new: str, tree: Tree) -> None:
    for path in _PRIVATE:
        os.makedirs(new + path, exist_ok=True)
        os.chmod(new + path, 0o1777)
    if "proc" not in tree:
        os.makedirs(new + _PROC, exist_ok=True)


def _place(host: str, new: str, child: Tree | Mount) -> None:
    if "target" in child:
        _bind(str(child["source"]), new, readonly=bool(child["readonly"]))
        return
    outer: Any = child.get("")
    if outer is not None:
        _bind(str(outer["source"]), new, readonly=False)
    elif not os.path.isdir(new):
        os.makedirs(new, mode=0o755)
    _populate(host, new, child)  # type: ignore[arg-type]
    if outer is not None and outer["readonly"]:
        _make_readonly(new)


def _bind_entry(source: str, target: str) -> None:
    with suppress(OSError):  # what cannot be bound (a socket that went, a mount that is gone) is left out
        if os.path.islink(source):
            os.symlink(os.readlink(source), target)
        else:
            _bind(source, target, readonly=False)


def _bind(source: str, target: str, *, readonly: bool) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT, 0o644))
    kernel.mount(source, target, flags=kernel.BIND | kernel.RECURSIVE)
    if readonly:
        _make_readonly(target)


def _make_readonly(target: str) -> None:
    # In a user namespace the flags of the mount below are locked: they must be repeated.
    locked = os.statvfs(target).f_flag & _LOCKED
    kernel.mount("none", target, flags=kernel.BIND | kernel.REMOUNT | kernel.READ_ONLY | locked)


def _mount_proc(target: str) -> None:
    try:
        kernel.mount("proc", target, "proc")
    except OSError:
        # A user namespace inside of a container may not mount it: the one of the host shows the same processes.
        kernel.mount(_PROC, target, flags=kernel.BIND | kernel.RECURSIVE)
