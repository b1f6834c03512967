"""Table rows of built-in kinds: objects are created, get a status, and are listed as a table.

`tests/data/builtins-tables.yaml` contains the objects. Ages, addresses and uids are masked; the types of cells are
compared too.
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
    """Return the objects to create, by the path of their collection."""
    content = yaml.safe_load((DATA / "builtins-tables.yaml").read_text())
    return {path: documents for path, documents in content.items() if not path.startswith(".")}


def rows(api: Api) -> dict[str, Any]:
    """Create all objects in the server's namespace; return columns and masked cells by collection and name."""
    tables: dict[str, Any] = {}
    for path, documents in objects().items():
        collection = path.replace("{namespace}", api.namespace)
        for document in json.loads(json.dumps(documents).replace("{namespace}", api.namespace)):
            _create(api, collection, document)
        table = api.request("GET", collection, accept=_TABLE).json()
        columns = table["columnDefinitions"]
        tables[path] = {"columns": columns} | {
            row["object"]["metadata"]["name"]: _masked(row["cells"], columns) for row in table["rows"]
        }
    return tables


def _create(api: Api, collection: str, document: dict[str, Any]) -> None:
    status = document.pop("status", None)
    created = api.request("POST", collection, document)
    assert created.status == 201, created.body
    if status is not None:
        name = document["metadata"]["name"]
        updated = api.request("PATCH", f"{collection}/{name}/status", {"status": status}, content_type=_MERGE)
        assert updated.status == 200, updated.body


def _masked(cells: list[Any], columns: list[dict[str, Any]]) -> list[Any]:
    return [_mask(cell, column["name"]) for cell, column in zip(cells, columns, strict=False)]


def _mask(cell: Any, column: str) -> Any:
    if not isinstance(cell, str):
        return cell
    if column in _TIMES:
        return _AGE.sub("{age}", cell)
    return _NODE_PORT.sub(":{port}/", _ADDRESS.sub("{address}", _UID.sub("{uid}", cell)))
