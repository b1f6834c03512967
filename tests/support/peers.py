"""An environment of their own for other people's clients and frameworks, made once in the user's cache.

They never come into the environment of the tests, so that the package cannot come to need them.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["PEERS", "PeersMissing", "peers_python"]

PEERS = ("kopf", "kr8s", "kubernetes_asyncio", "lightkube")

_PINS = Path(__file__).parent.parent.parent / "constraints" / "bench.txt"


class PeersMissing(Exception):
    """The environment cannot be made; the text says why."""


def peers_python(environ: Mapping[str, str] = os.environ) -> Path:
    """The Python of the environment; it is made when it is not there, anew when the pins change."""
    named = Path(environ.get("XDG_CACHE_HOME", ""))
    cache = named if named.is_absolute() else Path(environ.get("HOME") or Path.home()) / ".cache"
    pins = hashlib.sha256(_PINS.read_bytes() + sys.version.encode()).hexdigest()[:16]
    directory = cache / "konverge" / "peers" / pins
    python = directory / "bin" / "python"
    complete = directory / "complete"
    if not complete.exists():
        _run(sys.executable, "-m", "venv", "--clear", str(directory))
        install = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        _run(*install, "--constraint", str(_PINS), *PEERS)
        complete.touch()
    return python


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no word").splitlines()[-1]
        raise PeersMissing(f"make an environment with {', '.join(PEERS)}: {last}")
