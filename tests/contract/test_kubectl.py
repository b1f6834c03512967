"""One kubectl script on two servers: the same exit codes and the same output, except uids, versions and times.

The steps of a script run in order on each server, on both servers concurrently. No controllers run on either.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from both_servers import EmbeddedServerThread
from konverge.testing import ControlPlane
from kubectl import Kubectl, Run

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 2
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: web
        image: web:1
        ports:
        - containerPort: 80
        env:
        - {name: A, value: "1"}
        - {name: B, value: "2"}
        resources:
          requests: {cpu: 100m, memory: 64Mi}
"""
CHANGED = DEPLOYMENT.replace("web:1", "web:2").replace('{name: A, value: "1"}', '{name: C, value: "3"}')
SETTINGS = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  labels: {app: web}
data:
  color: blue
  size: "3"
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  selector: {app: web}
  clusterIP: None
  ports:
  - port: 80
    targetPort: 8080
"""
LOGIN = """
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: secret}
"""
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.kubectl.test
spec:
  group: kubectl.test
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size, description: how large}
    - {name: Phase, type: string, jsonPath: .status.phase, priority: 1}
    schema:
      openAPIV3Schema:
        type: object
        description: A widget.
        properties:
          spec:
            type: object
            description: What is wanted.
            required: [size]
            properties:
              size: {type: integer, minimum: 1, maximum: 10, description: How large it is.}
              mode: {type: string, enum: [a, b], default: a}
              tags: {type: array, items: {type: string}}
          status:
            type: object
            properties:
              phase: {type: string}
              size: {type: integer}
"""
WIDGET = """
apiVersion: kubectl.test/v1
kind: Widget
metadata: {name: first}
spec: {size: 3, tags: [x, z]}
"""


@dataclass(frozen=True)
class Step:
    """One command line; `text` is what kubectl reads from its input, `editor` what $EDITOR does."""

    line: str
    text: str = ""
    editor: str = ""

    def __str__(self) -> str:
        return self.line


def k(line: str, text: str = "", editor: str = "") -> Step:
    return Step(line, text, editor)


SCRIPTS: dict[str, list[Step]] = {
    "without files": [
        k("create deployment web --image=web:1 --replicas=2 --port=80"),
        k("get deployment web -o yaml --show-managed-fields"),
        k("create configmap settings --from-literal=color=blue --from-literal=size="),
        k("create secret generic login --from-literal=password=secret"),
        k("create secret docker-registry pull --docker-username=u --docker-password=p --docker-server=s"),
        k("create serviceaccount robot"),
        k("create job once --image=tool:1 -- run it"),
        k("create cronjob hourly --image=tool:1 --schedule=@hourly"),
        k("create ingress web --rule=a.example/*=web:80,tls=cert --default-backend=web:http"),
        k("create role reader --verb=get,list --resource=pods,deployments.apps --resource-name=a"),
        k("create rolebinding readers --role=reader --serviceaccount=shop:robot --user=u --group=g"),
        k("create quota small --hard=pods=2,cpu=1500m --scopes=NotTerminating"),
        k("create poddisruptionbudget web --selector=app=web --max-unavailable=50%"),
        k("create priorityclass kubectl-high --value=10 --description=high"),
        k("create clusterrole kubectl-all --verb=* --resource=* --non-resource-url=/metrics"),
        k("create clusterrolebinding kubectl-all --clusterrole=kubectl-all --user=u"),
        k("create service clusterip plain --tcp=80:8080 --clusterip=None"),
        k("create service externalname away --external-name=a.example"),
        k("create deployment web --image=web:1"),
        k("create configmap Bad --from-literal=a=1"),
        k("create configmap dry --from-literal=a=1 --dry-run=server -o yaml"),
        k("run single --image=web:1 --port=80 --env=A=1 --labels=app=single"),
        k("expose deployment web --port=80 --target-port=8080 --cluster-ip=None"),
        k("autoscale deployment web --min=1 --max=3 --cpu=50%"),
        k("get hpa web -o yaml --show-managed-fields"),
        k("scale deployment web --replicas=3"),
        k("set image deployment/web web=web:2"),
        k("set env deployment/web A=1"),
        k("set resources deployment/web --limits=cpu=1,memory=64Mi"),
        k("set serviceaccount deployment web robot"),
        k("rollout pause deployment/web"),
        k("rollout resume deployment/web"),
        k("rollout history deployment/web"),
        k("rollout undo deployment/web"),
        k("get cm,secret,sa,job,cronjob,ingress,role,rolebinding,quota,pdb,service,pod -o yaml"),
        k("get priorityclass/kubectl-high clusterrole/kubectl-all clusterrolebinding/kubectl-all -o yaml"),
        k("delete pod single --now"),
        k("delete deployment web --cascade=background"),
    ],
    "create": [
        k("create -f -", SETTINGS),
        k("create -f -", SETTINGS),
        k("create -f -", LOGIN),
        k("create -f -", DEPLOYMENT),
        k("create -f - --dry-run=server -o yaml", DEPLOYMENT.replace("name: web", "name: dry")),
        k("create -f - --validate=strict", SETTINGS.replace("\ndata:", "\nbogus: 1\ndata:").replace("settings", "odd")),
        k("create -f - --validate=warn", SETTINGS.replace("\ndata:", "\nbogus: 1\ndata:").replace("settings", "odd")),
        k("create -f - --validate=false", SETTINGS.replace("\ndata:", "\nbogus: 1\ndata:").replace("settings", "odd2")),
        k("create -f -", SETTINGS.replace("settings", "Bad_Name")),
        k("create -f -", SETTINGS.replace("kind: ConfigMap", "kind: Confik")),
        k("create -f -", SETTINGS.replace("apiVersion: v1", "apiVersion: v9")),
        k("run alone --image=alone:1 --dry-run=server -o yaml"),
        k("delete secret/login deployment/web"),
    ],
    "get": [
        k("create -f -", SETTINGS),
        k("create -f -", DEPLOYMENT),
        k("create -f -", SERVICE),
        k("get configmaps"),
        k("get configmaps -o wide --show-labels"),
        k("get configmap settings -o json"),
        k("get configmap settings -o yaml --show-managed-fields"),
        k("get deployments -o wide"),
        k("get deploy,cm -o name"),
        k("get deployment web -o yaml --show-managed-fields"),
        k("get services -o wide"),
        k("get all"),
        k("get configmaps -l app=web -o name"),
        k("get configmaps -l app!=web,app -o name"),
        k("get configmaps --field-selector metadata.name=settings -o name"),
        k("get configmaps --field-selector data.x=1"),
        k("get configmaps -A --chunk-size=1 -o name -l app=web"),
        k("get configmaps -o custom-columns=NAME:.metadata.name,COLOR:.data.color"),
        k("get configmaps -o jsonpath={.items[*].data.color}"),
        k("get configmaps --sort-by=.metadata.name"),
        k("get configmap missing"),
        k("get configmap missing --ignore-not-found"),
        k("get nothings"),
        k("get namespaces -o name"),
        k("get namespace shop-get -o yaml"),
        k("get --raw /healthz"),
    ],
    "describe": [
        k("create -f -", SETTINGS),
        k("create -f -", DEPLOYMENT),
        k("create -f -", SERVICE),
        k("describe configmap settings"),
        k("describe deployment web"),
        k("describe service web"),
        k("describe namespace shop-describe"),
        k("describe configmap missing"),
    ],
    "apply": [
        k("apply -f -", DEPLOYMENT),
        k("apply -f -", DEPLOYMENT),
        k("get deployment web -o yaml --show-managed-fields"),
        k("diff -f -", DEPLOYMENT),
        k("diff -f -", CHANGED),
        k("apply -f - --dry-run=server -o yaml", CHANGED),
        k("apply -f -", CHANGED),
        k("get deployment web -o yaml --show-managed-fields"),
        k("apply view-last-applied deployment web"),
        k("apply -f -", SERVICE),
        k("apply -f -", SERVICE.replace("port: 80", "port: 81")),
        k("apply -f -", SETTINGS + "---" + DEPLOYMENT.replace("name: web", "name: second")),
        k("apply -f - --prune -l app=web --prune-allowlist=core/v1/ConfigMap", DEPLOYMENT),
        k("apply -f -", CHANGED.replace("app: web", "app: other")),
        k("delete -f -", DEPLOYMENT),
    ],
    "server-side apply": [
        k("apply --server-side -f -", DEPLOYMENT),
        k("apply --server-side -f -", DEPLOYMENT),
        k("get deployment web -o yaml --show-managed-fields"),
        k("apply --server-side --field-manager=other -f -", CHANGED),
        k("apply --server-side --field-manager=other --force-conflicts -f -", CHANGED),
        k("diff --server-side -f -", DEPLOYMENT),
        k("get deployment web -o yaml --show-managed-fields"),
        k("apply --server-side -f - --dry-run=server -o name", SETTINGS),
        k("apply -f -", SETTINGS),
        k("apply --server-side -f -", SETTINGS.replace("blue", "red")),
        k("get configmap settings -o yaml --show-managed-fields"),
        k("apply --server-side -f -", SETTINGS.replace("\ndata:", "\nbogus: 1\ndata:")),
    ],
    "change": [
        k("create -f -", SETTINGS),
        k("create -f -", DEPLOYMENT),
        k("label configmap settings tier=front"),
        k("label configmap settings tier=back"),
        k("label configmap settings tier=back --overwrite"),
        k("label configmap settings tier-"),
        k("label configmap settings a/b/c=1"),
        k("annotate configmap settings note=hello other=x"),
        k("annotate configmap settings note-"),
        k("annotate configmaps --all seen=yes"),
        k('patch configmap settings -p {"data":{"color":"red"}}'),
        k('patch configmap settings --type=merge -p {"data":{"size":null}}'),
        k('patch configmap settings --type=json -p [{"op":"add","path":"/data/new","value":"1"}]'),
        k('patch configmap settings --type=json -p [{"op":"remove","path":"/data/none"}]'),
        k('patch deployment web -p {"spec":{"template":{"spec":{"containers":[{"name":"side","image":"s:1"}]}}}}'),
        k('patch deployment web -p {"spec":{"template":{"spec":{"containers":[{"name":"side","$patch":"delete"}]}}}}'),
        k('patch deployment web -p {"spec":{"replicas":"many"}}'),
        k('patch deployment web --subresource=status --type=merge -p {"status":{"replicas":2}}'),
        k("patch configmap missing -p {}"),
        k("get configmap settings -o yaml --show-managed-fields"),
        k("get deployment web -o yaml --show-managed-fields"),
        k("edit configmap settings", editor="sed -i s/red/green/"),
        k("edit configmap settings", editor="true"),
        k("edit deployment web --subresource=scale", editor="sed -i 's/  replicas: 2$/  replicas: 4/'"),
        k("edit deployment web", editor="sed -i s/web:1/web:9/"),
        k("get deployment web -o yaml --show-managed-fields"),
        k("scale deployment web --replicas=3"),
        k("scale deployment web --replicas=5 --current-replicas=4"),
        k("scale configmap settings --replicas=1"),
        k("set image deployment/web web=web:3"),
        k("set env deployment/web A=9 B-"),
        k("set resources deployment/web --limits=cpu=1"),
        k("rollout pause deployment/web"),
        k("rollout pause deployment/web"),
        k("rollout resume deployment/web"),
        k("rollout restart deployment/web"),
        k("get deployment web -o jsonpath={.spec.replicas}{.spec.template.spec.containers[*].image}"),
        k("replace -f -", SETTINGS.replace("blue", "yellow")),
        k("replace --force -f -", SETTINGS),
        k("replace -f -", SETTINGS.replace("settings", "missing")),
        k("get configmap settings -o yaml"),
        k("expose deployment web --port=80 --cluster-ip=None"),
        k("get service web -o yaml"),
    ],
    "wait and delete": [
        k("create -f -", SETTINGS),
        k("create -f -", DEPLOYMENT),
        k("wait configmap/settings --for=jsonpath={.data.color}=blue --timeout=5s"),
        k("wait configmap/settings --for=jsonpath={.data.color}=red --timeout=1s"),
        k("wait configmap/missing --for=jsonpath={.data.color}=red --timeout=1s"),
        k("wait configmap/missing --for=delete --timeout=1s"),
        k("wait configmap/settings --for=create --timeout=5s"),
        k(
            "patch deployment web --subresource=status --type=merge -p "
            '{"status":{"conditions":[{"type":"Available","status":"True"}]}}'
        ),
        k("wait deployment/web --for=condition=Available --timeout=5s"),
        k("delete configmap settings --dry-run=server"),
        k("delete configmap settings"),
        k("delete configmap settings"),
        k("delete configmap settings --ignore-not-found"),
        k("create -f -", SETTINGS),
        k("delete configmap settings --cascade=background"),
        k("delete deployment web --cascade=orphan --wait=false"),
        k("get deployment web -o jsonpath={.metadata.finalizers}"),
        k('patch deployment web --type=merge -p {"metadata":{"finalizers":null}}'),
        k("get deployment web"),
        k("create -f -", DEPLOYMENT),
        k("delete deployment web --cascade=foreground --wait=false"),
        k("get deployment web -o jsonpath={.metadata.finalizers}{.metadata.deletionGracePeriodSeconds}"),
        k("delete deployment web --wait=false"),
        k('patch deployment web --type=merge -p {"metadata":{"finalizers":null}}'),
        k("create -f -", SETTINGS.replace("settings", "one")),
        k("create -f -", SETTINGS.replace("settings", "two")),
        k("label configmap two gone=yes"),
        k("delete configmaps -l gone=yes"),
        k("delete configmaps --all"),
        k("delete configmaps,secrets --all"),
        k("delete namespace default"),
        k("delete nothings x"),
    ],
    "custom resources": [
        k("apply -f -", CRD),
        k("wait crd/widgets.kubectl.test --for=condition=Established --timeout=20s"),
        k("get crd widgets.kubectl.test"),
        k("create -f -", WIDGET),
        k("get widgets"),
        k("get wd -o wide"),
        k("get widget first -o yaml --show-managed-fields"),
        k("describe widget first"),
        k("create -f -", WIDGET.replace("first", "second").replace("size: 3", "size: 30")),
        k("create -f -", WIDGET.replace("first", "second").replace("size: 3", "size: 3, bogus: 1")),
        k("create -f - --validate=warn", WIDGET.replace("first", "second").replace("size: 3", "size: 3, bogus: 1")),
        k("create -f -", WIDGET.replace("first", "third").replace("spec: {size: 3, tags: [x, z]}", "")),
        k("apply -f -", WIDGET),
        k("apply -f -", WIDGET.replace("size: 3", "size: 4")),
        k("apply --server-side -f -", WIDGET.replace("size: 3", "size: 5")),
        k("apply --server-side --field-manager=other -f -", WIDGET.replace("size: 3", "size: 6")),
        k("diff -f -", WIDGET),
        k('patch widget first --type=merge -p {"spec":{"mode":"b"}}'),
        k('patch widget first -p {"spec":{"mode":"b"}}'),
        k('patch widget first --type=json -p [{"op":"replace","path":"/spec/mode","value":"c"}]'),
        k('patch widget first --subresource=status --type=merge -p {"status":{"phase":"Ready","size":2}}'),
        k("label widget first tier=front"),
        k("scale widget first --replicas=7"),
        k("edit widget first", editor="sed -i 's/mode: b/mode: a/'"),
        k("wait widget/first --for=jsonpath={.status.phase}=Ready --timeout=5s"),
        k("get all"),
        k("get widget first -o yaml --show-managed-fields"),
        k("explain widgets"),
        k("explain widgets.spec.size"),
        k("explain widgets.spec.nothing"),
        k("explain widgets --recursive"),
        k("api-resources --api-group=kubectl.test -o wide"),
        k("delete widgets --all"),
        k("delete crd widgets.kubectl.test"),
    ],
    "discovery": [
        k("api-resources"),
        k("api-resources -o wide --sort-by=name"),
        k("api-resources --namespaced=false -o name"),
        k("api-versions"),
        k("explain deployment"),
        k("explain deployment.spec.strategy"),
        k("explain configmap --recursive"),
        k("explain pod.spec.containers.livenessProbe --recursive"),
        k("explain hpa --api-version=autoscaling/v1"),
        k("explain nothings"),
        k("explain deployment.spec.nothing"),
    ],
}

DIFFERENCES: dict[tuple[str, str], str] = {}
"""Steps whose output differs, with the reason."""


@dataclass
class Player:
    """One server, and kubectl pointed at it."""

    name: str
    kubectl: Kubectl

    def run_script(self, script: str) -> list[Run]:
        namespace = _namespace(script)
        self.make_namespace(namespace)
        return [self._step(step, namespace) for step in SCRIPTS[script]]

    def make_namespace(self, name: str) -> None:
        document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        run = self.kubectl.run(["create", "-f", "-"], text=json.dumps(document))
        assert run.code == 0, run.err

    def _step(self, step: Step, namespace: str) -> Run:
        environment = {"EDITOR": step.editor} if step.editor else {}
        return self.kubectl.run([*_split(step.line), "-n", namespace], text=step.text, environment=environment)


def _split(line: str) -> list[str]:
    return line.split(" ")


def _namespace(script: str) -> str:
    return f"shop-{script.replace(' ', '-')}"


@pytest.fixture(scope="module")
def runners(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Player, Player]]:
    assert control_plane.url  # the programs are there; but other tests leave kinds on the shared server
    embedded = EmbeddedServerThread()
    kubeconfig = tmp_path_factory.mktemp("embedded") / "kubeconfig"
    embedded.listen(kubeconfig)
    with ControlPlane() as real:
        yield (
            Player("embedded", Kubectl(kubeconfig, tmp_path_factory.mktemp("kubectl"))),
            Player("real", Kubectl(real.kubeconfig, tmp_path_factory.mktemp("kubectl"))),
        )
    embedded.close()


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_has_the_same_output_on_both_servers(runners: tuple[Player, Player], script: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        embedded, real = pool.map(lambda runner: runner.run_script(script), runners)

    told = []
    for step, mine, theirs in zip(SCRIPTS[script], embedded, real, strict=True):
        if mine != theirs and (script, step.line) not in DIFFERENCES:
            told.append(f"kubectl {step}\n--- embedded\n{_shown(mine)}\n--- real\n{_shown(theirs)}")
    assert not told, "\n\n".join(told)


def _shown(run: Run) -> str:
    return f"exit {run.code}\n{run.out}\n{run.err}".rstrip()


def test_a_watch_shows_the_same_changes(runners: tuple[Player, Player]) -> None:
    seen = {}
    for runner in runners:
        kubectl = runner.kubectl
        runner.make_namespace("shop-watch")
        kubectl.run(["create", "-n", "shop-watch", "-f", "-"], text=SETTINGS)
        watch = kubectl.start(["get", "configmaps", "-n", "shop-watch", "-w", "--output-watch-events"])
        first = watch.lines(2)
        kubectl.run(["label", "-n", "shop-watch", "configmap", "settings", "tier=front"])
        kubectl.run(["create", "-n", "shop-watch", "-f", "-"], text=SETTINGS.replace("settings", "other"))
        kubectl.run(["delete", "-n", "shop-watch", "configmap", "settings"])
        seen[runner.name] = first + watch.lines(3)
        watch.stop()

    assert seen["embedded"] == seen["real"]
    assert [line.split("  ")[0] for line in seen["embedded"]] == ["EVENT", "ADDED", "MODIFIED", "ADDED", "DELETED"]


def test_a_watch_prints_whole_objects(runners: tuple[Player, Player]) -> None:
    seen = {}
    for runner in runners:
        runner.make_namespace("shop-json")
        shown = 'jsonpath={.type} {.object.data.color}{"\\n"}'
        watch = runner.kubectl.start(
            ["get", "configmaps", "-n", "shop-json", "-w", "--output-watch-events", "-o", shown]
        )
        runner.kubectl.run(["create", "-n", "shop-json", "-f", "-"], text=SETTINGS)
        seen[runner.name] = watch.lines(1)
        watch.stop()

    assert seen == {"embedded": ["ADDED blue"], "real": ["ADDED blue"]}


def test_kubectl_reads_a_kubeconfig_of_the_embedded_server(runners: tuple[Player, Player]) -> None:
    for runner in runners:
        run = runner.kubectl.run(["version", "-o", "json"])
        assert run.code == 0, run.err
        assert json.loads(run.out)["serverVersion"]["minor"] == "36"
