"""kubectl and Helm on two clusters: what a command prints on the real control plane, it prints on the embedded one.

One is the embedded cluster on a port. The other is a real API server with the real controller manager, simulated
nodes and the simulated provisioner. Scripts run side by side, each in a namespace of its own. Times, ages, hashes,
addresses and the nodes of pods are masked. `make interop` installs Helm and runs this.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from helm_scripts import HELM_SCRIPTS
from interop_scripts import INTEROP_SCRIPTS
from konverge.errors import ControlPlaneError
from konverge.testing import find_binaries
from konverge.testing.binaries import NEEDED
from kubectl import Run
from kubectl_clusters import KubectlCluster, embedded_kubectl_cluster, real_kubectl_cluster

pytestmark = pytest.mark.interop

AT_ONCE = 4
CONFLICT = "the object has been modified; please apply your changes to the latest version"
SCRIPTS = {**INTEROP_SCRIPTS, **HELM_SCRIPTS}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[Run], list[Run]]]:
    """What each command of each script prints on the real cluster and on ours."""
    try:
        find_binaries((*NEEDED, "kube-controller-manager", "kubectl"))
    except ControlPlaneError as missing:
        pytest.skip(str(missing))
    helm = Path(os.environ["KONVERGE_HELM"])
    chosen = os.environ.get("KONVERGE_INTEROP", "")
    with ExitStack() as stack:
        starts = (real_kubectl_cluster, embedded_kubectl_cluster)
        clusters = [stack.enter_context(start(tmp_path_factory.mktemp("cluster"), helm)) for start in starts]
        pool = stack.enter_context(ThreadPoolExecutor(2 * AT_ONCE))
        started = {
            name: [pool.submit(_run, cluster, name) for cluster in clusters] for name in SCRIPTS if chosen in name
        }
        return {name: (real.result(), ours.result()) for name, (real, ours) in started.items()}


def _run(cluster: KubectlCluster, script: str) -> list[Run]:
    """Run a script; once more when two of the real controllers wrote an object at once, and an event shows it."""
    namespace = f"script-{script.replace(' ', '-')}"
    found = cluster.run(namespace, SCRIPTS[script])
    conflict = cluster.name == "real" and any(CONFLICT in run.out for run in found)
    return cluster.run(f"{namespace}-again", SCRIPTS[script]) if conflict else found


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_prints_the_same_on_both_clusters(script: str, runs: dict[str, tuple[list[Run], list[Run]]]) -> None:
    if script not in runs:
        pytest.skip("not chosen by KONVERGE_INTEROP")
    different = []
    for line, theirs, ours in zip(SCRIPTS[script], *runs[script], strict=True):
        if ours != theirs:
            different.append(f"{line.program} {line}\n--- real\n{_shown(theirs)}\n--- embedded\n{_shown(ours)}")
        unseen = [word for word in line.words if word not in theirs.out + theirs.err]
        if unseen:
            different.append(f"{line.program} {line}\nnever showed {unseen}\n{_shown(theirs)}")
    assert not different, "\n\n".join(different)


def _shown(run: Run) -> str:
    return f"exit {run.code}\n{run.out}\n{run.err}".rstrip()
