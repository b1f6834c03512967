"""Where the programs of the real control plane are.

Rules:

1. Two places are looked at, in this order: the directory named by ``KUBEBUILDER_ASSETS``, then the directory in the
   user's cache that `konverge.testing.build` fills.
2. The programs come from one place. A set is never mixed: a controller manager newer than its API server is not a
   pair that Kubernetes supports, and a test must not fail over it.
3. The version that is built is written down once, in ``programs/go.mod``.
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
}
"""Every program by name, with the Go package that it is built from, in the order of building."""

NEEDED = ("etcd", "kube-apiserver", "kubectl")
"""What every control plane needs; the controller manager only when it is asked for."""

MODULE = Path(__file__).parent / "programs"
"""The Go module that pins them."""


@functools.cache
def kubernetes_version() -> str:
    """The version that is built, as go.mod pins it: "v1.36.4"."""
    pinned = re.search(r"^\s*(?:require )?k8s\.io/kubernetes (v\S+)", (MODULE / "go.mod").read_text(), re.MULTILINE)
    if pinned is None:
        raise ControlPlaneError(f"read {MODULE / 'go.mod'}: it requires no k8s.io/kubernetes")
    return pinned[1]


def cache_directory(environ: Mapping[str, str] | None = None) -> Path:
    """The directory in the user's cache that holds the programs of the pinned version."""
    environ = os.environ if environ is None else environ
    # The XDG rules: a relative path in the variable is to be ignored.
    named = Path(environ.get("XDG_CACHE_HOME", ""))
    cache = named if named.is_absolute() else Path(environ.get("HOME") or Path.home()) / ".cache"
    return cache / "konverge" / "control-plane" / kubernetes_version()


def missing_from(directory: Path, needed: Iterable[str]) -> list[str]:
    """Name the programs that the directory does not hold as files that can be run."""
    return [name for name in needed if not _runnable(directory / name)]


def find_binaries(
    needed: Iterable[str] = NEEDED, *, directory: Path | None = None, environ: Mapping[str, str] | None = None
) -> Path:
    """Return the first place that holds every needed program; with `directory`, that is the only place.

    Raises:
        ControlPlaneError: no directory does; the message names each place, what is missing there, and the way out.
    """
    wanted = tuple(needed)
    places = _places(os.environ if environ is None else environ) if directory is None else {"the directory": directory}
    missing = {place: missing_from(path, wanted) for place, path in places.items()}
    for place, names in missing.items():
        if not names:
            return places[place]
    looked = "; ".join(f"{place} {places[place]} has no {', '.join(names)}" for place, names in missing.items())
    build = "`make control-plane`, or `python -m konverge.testing.build`, builds all of it"
    raise ControlPlaneError(f"find control plane: {looked} ({build})")


def _places(environ: Mapping[str, str]) -> dict[str, Path]:
    assets = environ.get("KUBEBUILDER_ASSETS", "")
    named = {"KUBEBUILDER_ASSETS": Path(assets)} if assets else {}
    return {**named, "the cache": cache_directory(environ)}


def _runnable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
