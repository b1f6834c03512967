"""What the import of an operator's names costs, in seconds of CPU of a new process.

Run by `make bench-import`, with compiled modules, as in an image. The machine is shared, so an import of what every
asyncio program with msgspec needs is measured beside it, in turn.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from measurement import measure_rounds

STATEMENTS = {
    "nothing": "pass",
    "asyncio, ssl, msgspec, dataclasses, logging": "import asyncio, ssl, msgspec, dataclasses, logging",
    "konverge": "from konverge import Manager, controller_for, CustomResource, Reconciler, Context",
}
AIM = 0.2


def cpu_seconds(statement: str, cache: str) -> float:
    """Return the CPU time of a new process that runs a statement."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    code = f"{statement}\nimport time; print(time.process_time())"
    return float(subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True).stdout)


def main() -> None:
    """Print the medians of ten rounds."""
    with tempfile.TemporaryDirectory() as cache:
        for statement in STATEMENTS.values():
            cpu_seconds(statement, cache)  # compiles the modules
        contenders = {name: lambda text=text: cpu_seconds(text, cache) for name, text in STATEMENTS.items()}
        results = measure_rounds(contenders, rounds=10)
    for name, measured in results.items():
        print(f"{name:45} {measured.median:.3f} s CPU (spread {measured.spread:.3f})")
    print(f"aim: at most {AIM} s")


if __name__ == "__main__":
    main()
