"""Find the programs of the real control plane.

Rules:

1. Two directories are searched, in this order: the one in ``KUBEBUILDER_ASSETS``, then the one in the user's cache
   that `konverge.testing.build` fills.
2. All programs come from one directory. Sets are never mixed: Kubernetes does not support a controller manager that is
   newer than its API server, and a test must not fail because of it.
3. The version to build is pinned in one file, ``programs/go.mod``.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from konverge.errors import ControlPlaneError

__all__ = ["MODULE", "NEEDED", "PROGRAMS", "cache_directory", "find_binaries", "kubernetes_version", "missing_from"]

PROGRAMS: Mapping[str, str] = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
}
"""Every program with its Go package, in build order."""

NEEDED = ("etcd", "kube-apiserver", "kubectl")
"""The programs of every control plane; the controller manager and the scheduler are optional."""

MODULE = Path(__file__).parent / "programs"
"""The Go module that pins their versions."""


@functools.cache
def kubernetes_version() -> str:
    """Return the version that go.mod pins: "v1.36.4"."""
    pinned = re.search(r"^\s*(?:require )?k8s\.io/kubernetes (v\S+)", (MODULE / "go.mod").read_text(), re.MULTILINE)
    if pinned is None:
        raise ControlPlaneError(f"read {MODULE / 'go.mod'}: it does not require k8s.io/kubernetes")
    return pinned[1]


def cache_directory(environ: Mapping[str, str] | None = None) -> Path:
    """Return the directory in the user's cache for the programs of the pinned version."""
    environ = os.environ if environ is None else environ
    # XDG: a relative path in the variable is ignored.
    xdg = Path(environ.get("XDG_CACHE_HOME", ""))
    cache = xdg if xdg.is_absolute() else Path(environ.get("HOME") or Path.home()) / ".cache"
    return cache / "konverge" / "control-plane" / kubernetes_version()


def missing_from(directory: Path, needed: Iterable[str]) -> list[str]:
    """Return the names of the programs that are not executable files in the directory."""
    return [name for name in needed if not _is_executable(directory / name)]


def find_binaries(
    needed: Iterable[str] = NEEDED, *, directory: Path | None = None, environ: Mapping[str, str] | None = None
) -> Path:
    """Return the first directory that has every needed program; with `directory`, only that one is searched.

    Raises:
        ControlPlaneError: no directory has them; the message names each directory, the missing programs, and the fix.
    """
    required = tuple(needed)
    paths = (
        _search_paths(os.environ if environ is None else environ) if directory is None else {"the directory": directory}
    )
    missing = {label: missing_from(path, required) for label, path in paths.items()}
    for label, names in missing.items():
        if not names:
            return paths[label]
    problems = "; ".join(f"{label} {paths[label]} has no {', '.join(names)}" for label, names in missing.items())
    fix = "`make control-plane`, or `python -m konverge.testing.build`, builds all of it"
    raise ControlPlaneError(f"find control plane: {problems} ({fix})")


def _search_paths(environ: Mapping[str, str]) -> dict[str, Path]:
    assets = environ.get("KUBEBUILDER_ASSETS", "")
    from_environ = {"KUBEBUILDER_ASSETS": Path(assets)} if assets else {}
    return {**from_environ, "the cache": cache_directory(environ)}


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
