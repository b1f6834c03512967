"""kubectl on two clusters that live: the same commands that wait for somebody to act, the same ends.

One is the embedded cluster on a port. The other is a real API server with the real controller manager, and with our
stand-in for nodes. Scripts run side by side, each in a namespace of its own. Hashes, ages, addresses and nodes are
masked, and so is what `rollout status` says on its way.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from konverge.errors import ControlPlaneError
from konverge.testing import find_binaries
from konverge.testing.binaries import NEEDED
from kubectl_clusters import (
    Line,
    Pages,
    differences,
    embedded_kubectl_cluster,
    k,
    real_kubectl_cluster,
    run_on_both,
    wait_for,
)

pytestmark = pytest.mark.control_plane

AT_ONCE = 6


def deployment(image: str = "web:1", **spec: str) -> str:
    more = "".join(f"\n  {name}: {value}" for name, value in spec.items())
    return f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, labels: {{app: web}}}}
spec:{more}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers: [{{name: web, image: "{image}"}}]
"""


def stateful_set(image: str = "web:1", **spec: str) -> str:
    more = "".join(f"\n  {name}: {value}" for name, value in spec.items())
    return f"""
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db, labels: {{app: db}}}}
spec:{more}
  serviceName: db
  selector: {{matchLabels: {{app: db}}}}
  template:
    metadata: {{labels: {{app: db}}}}
    spec:
      containers: [{{name: db, image: "{image}"}}]
"""


STATEFUL_SET_STATUS = k("rollout status statefulset/db --timeout=100s")
STATUS = k("rollout status deployment/web --timeout=100s")
READY = k("wait deployment/web --for=condition=Available --timeout=100s")

DRAINED = k("rollout status deployment/drained --timeout=100s")

SCRIPTS: dict[str, list[Line]] = {
    "drain": [  # only the pods of this script: the others share the nodes
        k("create deployment drained --image=web:1 --replicas=4"),
        DRAINED,
        k("create poddisruptionbudget drained --selector=app=drained --min-available=4"),
        wait_for("get poddisruptionbudgets", " 4 N/A 0 "),
        k("drain node-1 --pod-selector=app=drained --timeout=7s"),
        k('patch poddisruptionbudget drained -p {"spec":{"minAvailable":3}}'),
        wait_for("get poddisruptionbudgets", " 3 N/A 1 "),
        k("drain node-1 --pod-selector=app=drained --timeout=100s"),
        wait_for("get pods --field-selector spec.nodeName=node-1", "No resources found"),
        k("uncordon node-1"),
        DRAINED,
        wait_for("get poddisruptionbudgets", " 3 N/A 1 "),
        wait_for("get pods", " 1/1 Running 0 "),
    ],
    "roll": [
        k("create deployment web --image=web:1 --replicas=2"),
        STATUS,
        READY,
        wait_for("get deployments -o wide", " 2/2 2 2 "),
        wait_for("get replicasets -o wide", " 2 2 2 "),
        wait_for("get pods -o wide", " 1/1 Running 0 "),
        k("scale deployment web --replicas=3"),
        STATUS,
        k("set image deployment/web web=web:2"),
        STATUS,
        wait_for("get replicasets -o wide", " 0 0 0 ", " 3 3 3 "),
        wait_for("get deployments", " 3/3 3 3 "),
    ],
    "history": [
        k("create deployment web --image=web:1"),
        STATUS,
        k("annotate deployment web kubernetes.io/change-cause=first"),
        wait_for("rollout history deployment/web", "1 first"),
        k("set image deployment/web web=web:2"),
        k("annotate deployment web kubernetes.io/change-cause=second --overwrite"),
        STATUS,
        wait_for("rollout history deployment/web", "1 first", "2 second"),
        k("rollout history deployment/web --revision=2"),
        k("rollout undo deployment/web"),
        STATUS,
        wait_for("rollout history deployment/web", "3 "),
        wait_for("get deployments -o wide", " web:1 ", " 1/1 1 1 "),
        k("rollout undo deployment/web --to-revision=2"),
        STATUS,
        wait_for("rollout history deployment/web", "4 "),
        wait_for("get deployments -o wide", " web:2 ", " 1/1 1 1 "),
        k("rollout undo deployment/web --to-revision=9"),
        k("rollout history deployment/web --revision=9"),
    ],
    "restart and pause": [
        k("create -f -", deployment(replicas="2")),
        STATUS,
        k("rollout restart deployment/web"),
        STATUS,
        k("rollout history deployment/web --revision=2"),
        k("rollout pause deployment/web"),
        k("rollout pause deployment/web"),
        k("rollout restart deployment/web"),
        k("set image deployment/web web=web:2"),
        wait_for("get deployments", " 2/2 0 2 "),
        k("rollout undo deployment/web"),
        k("rollout status deployment/web --watch=false"),
        k("rollout resume deployment/web"),
        STATUS,
        wait_for("get replicasets -o wide", " 2 2 2 "),
        wait_for("rollout history deployment/web", "3 "),
    ],
    "fail": [
        k("create -f -", deployment(replicas="2")),
        STATUS,
        k('patch deployment web -p {"spec":{"progressDeadlineSeconds":3}}'),
        k("set image deployment/web web=bad:1"),
        STATUS,
        STATUS,
        wait_for("get deployments -o wide", " 2/2 1 2 "),
        wait_for("get pods", " 1/1 Running 0 ", " 0/1 Running 0 "),
        k("wait deployment/web --for=condition=Progressing=False --timeout=100s"),
        k("rollout undo deployment/web"),
        STATUS,
    ],
    "roll a stateful set": [
        k("create -f -", stateful_set(replicas="2")),
        STATEFUL_SET_STATUS,
        k("get statefulsets -o wide"),
        wait_for("get pods -o wide", "db-0 1/1 Running 0 ", "db-1 1/1 Running 0 "),
        k("scale statefulset db --replicas=3"),
        STATEFUL_SET_STATUS,
        k("set image statefulset/db db=web:2"),
        STATEFUL_SET_STATUS,
        wait_for("get statefulsets -o wide", " 3/3 ", " web:2"),
        k("rollout history statefulset/db"),
        k("rollout history statefulset/db --revision=2"),
        k("rollout undo statefulset/db"),
        STATEFUL_SET_STATUS,
        k("rollout history statefulset/db"),
        wait_for("get statefulsets -o wide", " 3/3 ", " web:1"),
        k("rollout undo statefulset/db --to-revision=2"),
        STATEFUL_SET_STATUS,
        wait_for("get controllerrevisions", " 3 ", " 4 "),
        k("rollout undo statefulset/db --to-revision=9"),
        k("rollout restart statefulset/db"),
        STATEFUL_SET_STATUS,
        k("wait statefulset/db --for=jsonpath={.status.readyReplicas}=3 --timeout=100s"),
    ],
    "partition a stateful set": [
        k("create -f -", stateful_set(replicas="2", podManagementPolicy="Parallel")),
        STATEFUL_SET_STATUS,
        k('patch statefulset db -p {"spec":{"updateStrategy":{"rollingUpdate":{"partition":1}}}}'),
        k("set image statefulset/db db=web:2"),
        STATEFUL_SET_STATUS,
        wait_for("get pods -o custom-columns=NAME:.metadata.name,IMAGE:.spec.containers[0].image", "db-1 web:2"),
        k('patch statefulset db -p {"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}'),
        k("rollout status statefulset/db"),
        k("delete statefulset db --cascade=orphan --timeout=100s"),
        k("get statefulsets"),
        wait_for("get pods", "db-0 1/1 Running 0 ", "db-1 1/1 Running 0 "),
        k("create -f -", stateful_set("web:2", replicas="1")),
        STATEFUL_SET_STATUS,
        k("wait pod/db-1 --for=delete --timeout=100s"),
        k("delete statefulset db --cascade=foreground --timeout=100s"),
        k("get statefulsets,pods,controllerrevisions"),
    ],
    "fail a stateful set": [
        k("create -f -", stateful_set(replicas="2")),
        STATEFUL_SET_STATUS,
        k("set image statefulset/db db=bad:1"),
        k("rollout status statefulset/db --timeout=5s"),
        wait_for("get pods", "db-0 1/1 Running 0 ", "db-1 0/1 Running 0 "),
        k("rollout undo statefulset/db"),
        k("delete pod db-1 --timeout=100s"),
        STATEFUL_SET_STATUS,
        wait_for("get statefulsets -o wide", " 2/2 ", " web:1"),
    ],
    "job": [
        k("create job once --image=tool:1 -- run it"),
        k("wait job/once --for=condition=complete --timeout=100s"),
        wait_for("get jobs -o wide", " Complete 1/1 "),
        wait_for("get pods -o wide", " 0/1 Completed 0 "),
        k("delete job once --timeout=100s"),
        wait_for("get pods", "No resources found"),
    ],
    "orphan": [
        k("create -f -", deployment(replicas="2")),
        STATUS,
        k("delete deployment web --cascade=orphan --timeout=100s"),
        k("get deployments"),
        wait_for("get replicasets -o wide", " 2 2 2 "),
        k("delete replicasets --all --cascade=orphan --timeout=100s -o name"),
        k("get replicasets"),
        wait_for("get pods", " 1/1 Running 0 "),
        k("delete pods --all -o name --timeout=100s"),
        k("get pods"),
    ],
    "foreground": [
        k("create -f -", deployment("slow:1", replicas="2")),
        STATUS,
        k("delete deployment web --cascade=foreground --timeout=100s"),
        k("get deployments,replicasets,pods"),
    ],
    "background": [
        k("create -f -", deployment("slower:1", replicas="2")),
        STATUS,
        k("delete deployment web --cascade=background --timeout=100s"),
        k("get deployments"),
        wait_for("get pods", " 1/1 Terminating 0 "),
        k("wait pods -l app=web --for=delete --timeout=100s"),
        k("get pods"),
        k("wait pods -l app=web --for=delete --timeout=5s"),
        k("wait pods -l app=web --for=condition=Ready --timeout=5s"),
    ],
    "namespace": [
        k("create -f -", deployment("slow:1", replicas="2")),
        k("create configmap settings --from-literal=a=1"),
        k("create job once --image=tool:1 -- run it"),
        STATUS,
        k("wait job/once --for=condition=complete --timeout=100s"),
        k("delete namespace <namespace> --timeout=100s"),
        k("get namespace <namespace>"),
        k("get deployments,pods,jobs,configmaps"),
        k("create configmap settings --from-literal=a=1"),
    ],
}


def _namespace(script: str) -> str:
    return f"script-{script.replace(' ', '-')}"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pages]:
    """What each script gives on the real cluster and on ours."""
    try:
        find_binaries((*NEEDED, "kube-controller-manager", "kubectl"))
    except ControlPlaneError as missing:
        pytest.skip(str(missing))
    with (
        real_kubectl_cluster(tmp_path_factory.mktemp("real")) as real,
        embedded_kubectl_cluster(tmp_path_factory.mktemp("embedded")) as embedded,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        runs = {
            name: pool.submit(run_on_both, real, embedded, _namespace(name), lines) for name, lines in SCRIPTS.items()
        }
        return {name: run.result() for name, run in runs.items()}


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_ends_the_same_on_both_clusters(script: str, pages: dict[str, Pages]) -> None:
    found = differences(SCRIPTS[script], pages[script])
    assert not found, "\n\n".join(found)


def test_a_roll_out_that_fails_is_told_by_the_exit_code(pages: dict[str, Pages]) -> None:
    lines = [line.line for line in SCRIPTS["fail"]]
    for runs in pages["fail"]:
        failed = runs[lines.index("set image deployment/web web=bad:1") + 1]
        assert failed.code == 1
        assert failed.err == 'error: deployment "web" exceeded its progress deadline'
        assert runs[-1].out == 'deployment "web" successfully rolled out'
