"""The rows of tables of built-in kinds, asked of a server: objects are created, given a status, and shown.

`tests/data/builtins-tables.yaml` holds the objects. Ages, addresses and uids are masked; the types of cells count.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from two_servers import Api

DATA = Path(__file__).parent.parent / "data"
RECORDED_ROWS = DATA / "golden" / "builtins-rows.json"

_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_MERGE = "application/merge-patch+json"
_TIMES = ("Age", "Created At", "Last Seen", "First Seen", "Last Schedule", "Duration", "Restarts")
_AGE = re.compile(r"\d+[smhdy](\d+[smhd])?|20\d\d-\d\d-\d\dT[0-9:]{8}Z")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ADDRESS = re.compile(r"10\.(0|96)\.\d+\.\d+")
_NODE_PORT = re.compile(r":3\d{4}/")


def objects() -> dict[str, list[dict[str, Any]]]:
    """What is created, by the path of its collection."""
    content = yaml.safe_load((DATA / "builtins-tables.yaml").read_text())
    return {path: found for path, found in content.items() if not path.startswith(".")}


def rows(api: Api) -> dict[str, Any]:
    """Create everything in the server's namespace; return columns and masked cells by collection and name."""
    shown: dict[str, Any] = {}
    for path, found in objects().items():
        place = path.replace("{namespace}", api.namespace)
        for wish in json.loads(json.dumps(found).replace("{namespace}", api.namespace)):
            _create(api, place, wish)
        table = api.ask("GET", place, accept=_TABLE).json()
        columns = table["columnDefinitions"]
        shown[path] = {"columns": columns} | {
            row["object"]["metadata"]["name"]: _masked(row["cells"], columns) for row in table["rows"]
        }
    return shown


def _create(api: Api, place: str, wish: dict[str, Any]) -> None:
    status = wish.pop("status", None)
    made = api.ask("POST", place, wish)
    assert made.status == 201, made.body
    if status is not None:
        name = wish["metadata"]["name"]
        changed = api.ask("PATCH", f"{place}/{name}/status", {"status": status}, content_type=_MERGE)
        assert changed.status == 200, changed.body


def _masked(cells: list[Any], columns: list[dict[str, Any]]) -> list[Any]:
    return [_mask(cell, column["name"]) for cell, column in zip(cells, columns, strict=False)]


def _mask(cell: Any, column: str) -> Any:
    if not isinstance(cell, str):
        return cell
    if column in _TIMES:
        return _AGE.sub("{age}", cell)
    return _NODE_PORT.sub(":{port}/", _ADDRESS.sub("{address}", _UID.sub("{uid}", cell)))
