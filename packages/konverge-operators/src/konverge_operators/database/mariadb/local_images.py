"""The image of a member as programs of this machine, for process nodes: Debian's packages.

apt-get install --no-install-recommends mariadb-server galera-4 rsync
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import konverge_operators
from konverge_operators.database.mariadb.versions import MAJORS, image

if TYPE_CHECKING:
    from konverge_cluster.processes import LocalImage

__all__ = ["local_images", "missing_programs"]

_PROVIDER: Final = Path("/usr/lib/galera/libgalera_smm.so")
_PROGRAMS: Final = (
    "mariadbd",
    "mariadb-install-db",
    "mariadb",
    "mariadb-admin",
    "mariadb-dump",
    "mariadb-binlog",
    "rsync",
)
_SEARCHED: Final = "/usr/bin:/bin:/usr/sbin:/sbin"
_PACKAGE: Final = str(Path(konverge_operators.__file__).parents[1])


def missing_programs() -> list[str]:
    """Return what this machine lacks to run a member."""
    missing = [name for name in _PROGRAMS if shutil.which(name, path=_SEARCHED) is None]
    return missing if _PROVIDER.exists() else [*missing, str(_PROVIDER)]


def local_images() -> list[LocalImage]:
    """Return the local image of the installed version, which stands for all releases of its major; none without it."""
    if missing_programs():
        return []
    # Imported here because the package that runs processes is optional.
    from konverge_cluster.processes import LocalImage

    version = _version()
    major = next((one.name for one in MAJORS if version.startswith(f"{one.name}.")), version)
    env = {"PATH": _SEARCHED, "PYTHON": sys.executable, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": _PACKAGE}
    return [LocalImage(image(f"{major}.*"), env={**env, "WSREP_PROVIDER": str(_PROVIDER)}, paths=[_PACKAGE])]


def _version() -> str:
    """Return the version of the server: `mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for ...`."""
    program = shutil.which("mariadbd", path=_SEARCHED)
    assert program is not None
    printed = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return printed.split("Ver ")[1].split("-")[0]
