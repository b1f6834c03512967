"""Record the responses of a real server to the scripts of the tests: `python tools/record_responses.py`, run by hand.

The tests compare the embedded server with the recordings where no real server is available. Values that differ between
runs (uids, versions, times) are masked, so that the same server gives the same file.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
RECORDINGS = ROOT / "tests" / "data" / "recorded-answers.json.gz"

sys.path.insert(0, str(ROOT / "tests" / "support"))

from konverge.testing import ControlPlane  # noqa: E402
from script_responses import send_step  # noqa: E402
from scripts import SCRIPTS  # noqa: E402
from two_servers import RealApi, with_namespace  # noqa: E402


def main() -> None:
    recorded = {}
    with ControlPlane() as plane:
        for number, (name, steps) in enumerate(SCRIPTS.items()):
            api = RealApi(plane)
            api.namespace = f"recorded-{number}"
            with_namespace(api)
            recorded[name] = [send_step(api, step) for step in steps]
    text = json.dumps(recorded, sort_keys=True, separators=(",", ":")).encode()
    RECORDINGS.write_bytes(gzip.compress(text, mtime=0))
    sys.stdout.write(f"{sum(map(len, recorded.values()))} responses, {RECORDINGS.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
