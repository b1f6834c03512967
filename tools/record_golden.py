"""Record the responses of a real API server to the cases of the built-in kinds: `make golden`, run by hand.

The unit tests compare the embedded server with these recordings, so they need no real server.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from builtin_cases import RECORDED, cases  # noqa: E402
from builtin_rows import RECORDED_ROWS, rows  # noqa: E402
from konverge.testing import ControlPlane  # noqa: E402
from two_servers import RealApi, with_namespace  # noqa: E402


def main() -> None:
    with ControlPlane() as plane:
        builtins = RealApi(plane)
        builtins.namespace = "golden-builtins"
        with_namespace(builtins)
        write(RECORDED, {case.title: case.run(builtins) for case in cases()})
        tables = RealApi(plane)
        tables.namespace = "golden-rows"
        write(RECORDED_ROWS, rows(with_namespace(tables)))


def write(target: Path, content: Any) -> None:
    """Write JSON with one entry per line, so that recordings can be diffed."""
    lines = (f"{json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in content.items())
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    sys.stdout.write(f"{target.relative_to(ROOT)}: {len(content)} responses\n")


if __name__ == "__main__":
    main()
