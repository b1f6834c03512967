"""The command `konverge manifests`: the objects that an operator needs in a cluster, derived from its code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from konverge.cli.manifests.command import manifests

if TYPE_CHECKING:
    from konverge.cli.manifests.release import Release, files_of

__all__ = ["Release", "files_of", "manifests"]


def __getattr__(name: str) -> Any:
    # Imported on first use: every command imports this package, and only this one needs the modules of an operator.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from konverge.cli.manifests import release

    return getattr(release, name)
