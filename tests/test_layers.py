"""Imports only go down: the layers of each package, checked on the source without running it.

A module may import from layers below its own, and from its own part. Parts of one layer do not import each other. An
import inside `if TYPE_CHECKING` counts too: a type is a dependency.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGES = Path(__file__).parent.parent / "packages"

LAYERS: dict[str, list[set[str]]] = {
    "konverge": [
        {"errors"},
        {"objects", "telemetry", "certificates", "listener"},
        {"k8s"},
        {"wire", "schema", "queue", "codegen"},
        {"cache", "client"},
        {"reconcile", "triggers"},
        {"controller", "webhooks"},
        {"workflow"},
        {"manager"},
        {"testing"},
        {"cli", "__init__"},
        {"__main__"},
    ],
    "konverge_cluster": [
        {"storage", "patches"},
        {"api"},
        {"cel", "webhook_client", "cron_schedules"},
        {"builtins"},
        {"crds", "webhooks", "pod_security", "bootstrap", "authentication"},
        {"authorization"},
        {"http"},
        {"embedded_server"},
        {"clock", "event_limits", "pods_by_node", "server_messages", "status_writes"},
        {"volumes"},
        {"workloads", "garbage", "namespaces", "nodes", "role_aggregation", "credentials"},
        {"processes", "node_lifecycle", "taint_eviction", "pod_gc"},
        {"pod_streams"},
        {"embedded_cluster", "operator_accounts"},
        {"testing"},
        {"cli", "__init__"},
    ],
    "konverge_operators": [
        {"manifests"},
        {"autoscaling", "protection"},
        {"webapp", "ecommerce", "database", "redis", "myapp"},
        {"operator"},
        {"demo", "__init__"},
    ],
}
LEVEL = {
    package: {part: level for level, parts in enumerate(layers) for part in parts} for package, layers in LAYERS.items()
}

MAY_IMPORT = {
    "konverge": set[str](),
    "konverge_cluster": {"konverge"},
    "konverge_operators": {"konverge"},
}
"""Which packages a package is built on."""

API_SERVER = {part for layer in LAYERS["konverge_cluster"][:8] for part in layer}
API_SERVER_MAY_IMPORT = {"objects", "wire", "schema", "errors", "certificates", "listener", "client"}
"""What the API server needs of the framework: nothing of caches, queues, reconcilers, controllers and managers."""

OPTIONAL = {
    "konverge_operators/demo/environment.py": {"konverge_cluster"},
    "konverge_operators/demo/database.py": {"konverge_cluster"},
    "konverge_operators/demo/myapp.py": {"konverge_cluster"},
    "konverge_operators/redis/local_images.py": {"konverge_cluster"},
    "konverge_operators/ecommerce/local_images.py": {"konverge_cluster"},
    "konverge_operators/myapp/local_images.py": {"konverge_cluster"},
    "konverge_operators/database/mariadb/local_images.py": {"konverge_cluster"},
    "konverge_operators/database/postgresql/local_images.py": {"konverge_cluster"},
}
"""Imports of a package that only an extra installs."""

HTTP_FILES = {
    "konverge/client/aiohttp_transport.py",
    "konverge/webhooks/server.py",
    "konverge/manager/probes.py",
    "konverge/testing/fault_proxy.py",
    "konverge_cluster/http.py",
}
"""Only these files import the HTTP library: nothing of it leaks past them."""


def sources() -> Iterator[tuple[str, str]]:
    """Yield path (from the package's name on) and text of every source file."""
    for package in LAYERS:
        (root,) = PACKAGES.glob(f"*/src/{package}")
        for file in sorted(root.rglob("*.py")):
            yield file.relative_to(root.parent).as_posix(), file.read_text()


def part_of(path: str) -> str:
    """Return the part of its package that a file belongs to: the first folder, or the file itself."""
    return path.split("/")[1].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and absolute name of every import, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write absolute imports"
            yield node.lineno, str(node.module)
            if node.module in LAYERS:
                yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def is_allowed(path: str, name: str) -> bool:
    """Report whether a file may import a module of this project."""
    package, part = path.split("/")[0], part_of(path)
    other, *rest = name.split(".")
    if other != package:
        if other not in MAY_IMPORT[package] | OPTIONAL.get(path, set()):
            return False
        is_server = package == "konverge_cluster" and part in API_SERVER
        return not (is_server and rest and rest[0] not in API_SERVER_MAY_IMPORT)
    return not rest or rest[0] == part or LEVEL[package].get(rest[0], 0) < LEVEL[package][part]


def violations(path: str, text: str) -> list[str]:
    """List what a file imports that it must not, one line each."""
    found = []
    for line, name in imports(ast.parse(text)):
        if name.split(".")[0] == "aiohttp" and path not in HTTP_FILES:
            found.append(f"{path}:{line} imports aiohttp; only {', '.join(sorted(HTTP_FILES))} may")
        if name.split(".")[0] in LAYERS and not is_allowed(path, name):
            found.append(f"{path}:{line} imports {name}, which is not below it")
    return found


def test_imports_only_go_down() -> None:
    found = [line for path, text in sources() for line in violations(path, text)]
    assert not found, "\n".join(found)


def test_every_part_has_a_layer() -> None:
    for path, _ in sources():
        assert part_of(path) in LEVEL[path.split("/")[0]], path


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("konverge/objects/kinds.py", "from konverge.schema import CustomResource"),
        ("konverge/wire/frames.py", "import konverge.queue.workqueue"),
        ("konverge/client/client.py", "def late():\n    from konverge.cache.store import Store"),
        ("konverge/errors.py", "from konverge import objects"),
        ("konverge/client/client.py", "import aiohttp"),
        ("konverge/objects/kinds.py", "if TYPE_CHECKING:\n    from konverge.client import Client"),
        ("konverge/testing/fixtures.py", "from konverge_cluster import EmbeddedCluster"),
        ("konverge_cluster/builtins/strategy.py", "from konverge_cluster.webhooks import WebhookAdmission"),
        ("konverge_cluster/crds/serving.py", "from konverge.cache import Cache"),
        ("konverge_cluster/nodes/pod_reconciler.py", "from konverge_cluster.workloads import workload_controllers"),
        ("konverge_cluster/cli/dev.py", "from konverge_operators.webapp import operator"),
        ("konverge_operators/webapp/api.py", "from konverge_cluster import EmbeddedCluster"),
    ],
)
def test_a_planted_violation_is_found(path: str, text: str) -> None:
    assert violations(path, text)
