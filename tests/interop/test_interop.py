"""kubectl and Helm on two clusters: what a command prints on the real control plane, it prints on the embedded one.

One is the embedded cluster on a port. The other is a real API server with the real controller manager, simulated
nodes and the simulated provisioner. Scripts run side by side, each in a namespace of its own. Times, ages, hashes,
addresses and the nodes of pods are masked. `make interop` installs Helm and runs this.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from helm_scripts import HELM_SCRIPTS
from interop_scripts import INTEROP_SCRIPTS
from konverge.errors import ControlPlaneError
from konverge.testing import find_binaries
from konverge.testing.binaries import NEEDED
from kubectl_clusters import (
    KubectlCluster,
    Pages,
    differences,
    embedded_kubectl_cluster,
    real_kubectl_cluster,
    run_on_both,
)

pytestmark = pytest.mark.interop

AT_ONCE = 4
CONFLICT = "the object has been modified; please apply your changes to the latest version"
SCRIPTS = {**INTEROP_SCRIPTS, **HELM_SCRIPTS}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pages]:
    """What each command of each script prints on the real cluster and on ours."""
    try:
        find_binaries((*NEEDED, "kube-controller-manager", "kubectl"))
    except ControlPlaneError as missing:
        pytest.skip(str(missing))
    helm = Path(os.environ["KONVERGE_HELM"])
    chosen = os.environ.get("KONVERGE_INTEROP", "")
    with (
        real_kubectl_cluster(tmp_path_factory.mktemp("real"), helm) as real,
        embedded_kubectl_cluster(tmp_path_factory.mktemp("embedded"), helm) as embedded,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        names = [name for name in SCRIPTS if chosen in name]
        together = {name: pool.submit(_run, real, embedded, name) for name in names if not _evicts(name)}
        found = {name: run.result() for name, run in together.items()}
        return found | {name: _run(real, embedded, name) for name in names if _evicts(name)}


def _evicts(script: str) -> bool:
    """Report whether a script evicts pods from a node, those of other scripts too: it runs after them."""
    return any("NoExecute" in line.line for line in SCRIPTS[script])


def _run(real: KubectlCluster, embedded: KubectlCluster, script: str) -> Pages:
    """Run a script; once more when two of the real controllers wrote an object at once, and an event shows it."""
    namespace = f"script-{script.replace(' ', '-')}"
    found = run_on_both(real, embedded, namespace, SCRIPTS[script])
    conflict = any(CONFLICT in run.out for run in found[0])
    return run_on_both(real, embedded, f"{namespace}-again", SCRIPTS[script]) if conflict else found


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_prints_the_same_on_both_clusters(script: str, runs: dict[str, Pages]) -> None:
    if script not in runs:
        pytest.skip("not chosen by KONVERGE_INTEROP")
    found = differences(SCRIPTS[script], runs[script])
    assert not found, "\n\n".join(found)
