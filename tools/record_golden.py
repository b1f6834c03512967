"""Record what a real API server answers to the cases of the built-in kinds: `make golden`, by hand.

The unit tests hold the embedded control plane against these recordings, so they need no real server.
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
        answers = RealApi(plane)
        answers.namespace = "golden-builtins"
        with_namespace(answers)
        write(RECORDED, {case.title: case.run(answers) for case in cases()})
        tables = RealApi(plane)
        tables.namespace = "golden-rows"
        write(RECORDED_ROWS, rows(with_namespace(tables)))


def write(target: Path, content: Any) -> None:
    """Write JSON that can be read and compared line by line."""
    lines = (f"{json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in content.items())
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    sys.stdout.write(f"{target.relative_to(ROOT)}: {len(content)} answers\n")


if __name__ == "__main__":
    main()
