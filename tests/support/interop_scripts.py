"""Scripts of kubectl with the kinds that stateful operators need: commands that print, and commands that wait."""

from __future__ import annotations

from kubectl_clusters import Line

__all__ = ["INTEROP_SCRIPTS"]


def q(line: str, *words: str, text: str = "") -> Line:
    return Line(line, text, words, quoted=True)


DATABASE = """
apiVersion: v1
kind: Service
metadata: {name: db, labels: {app: db}}
spec: {clusterIP: None, selector: {app: db}, ports: [{name: db, port: 5432}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: db}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: db}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, labels: {app: db}}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Delete}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 20
      containers:
        - name: db
          image: database:1
          ports: [{name: db, containerPort: 5432}]
          env: [{name: MODE, value: primary}]
          resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}
          lifecycle: {preStop: {exec: {command: [sleep, "1"]}}}
          volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
    - metadata: {name: data}
      spec:
        accessModes: [ReadWriteOnce]
        storageClassName: <class>
        resources: {requests: {storage: 1Gi}}
"""
CLASS = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: <class>}
provisioner: simulated.konverge.dev
allowVolumeExpansion: true
volumeBindingMode: WaitForFirstConsumer
"""
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "web:1", ports: [{containerPort: 80}]}]
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: parts}
spec:
  completions: 3
  parallelism: 3
  completionMode: Indexed
  backoffLimitPerIndex: 0
  maxFailedIndexes: 3
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: part
          image: part:1
          command: [sh, -c, '[ "$JOB_COMPLETION_INDEX" = 1 ] && exit 3; sleep 2']
"""
READY = "rollout status statefulset/db --timeout=110s"

CREATED = (
    "configmap settings --from-literal=a=1 --from-literal=b=two",
    "secret generic password --from-literal=password=secret",
    "secret docker-registry pull --docker-server=registry.test --docker-username=u --docker-password=p",
    "service clusterip inner --tcp=80:8080",
    "service clusterip headless --clusterip=None",
    "service externalname outer --external-name=example.com",
    "deployment web --image=web:1 --replicas=2 --port=80",
    "job once --image=tool:1 -- sleep 1",
    "cronjob daily --image=tool:1 --schedule='0 3 * * *' -- sleep 1",
    "job jobs --from=cronjob/daily",
    "namespace <namespace>-other",
    "serviceaccount robot",
    "role reader --verb=get,list --resource=pods,deployments.apps",
    "rolebinding reader --role=reader --serviceaccount=<namespace>:robot",
    "clusterrole <namespace>-reader --verb=get --resource=nodes",
    "clusterrolebinding <namespace>-reader --clusterrole=<namespace>-reader --user=somebody",
    "quota limits --hard=pods=100",
    "priorityclass <namespace>-high --value=1000 --description=high",
    "poddisruptionbudget web --selector=app=web --min-available=1",
    "ingress web --rule=shop.test/=web:80",
)
INTEROP_SCRIPTS: dict[str, list[Line]] = {
    "create": [
        *(q(f"create {one}") for one in CREATED),
        q("create service nodeport outside --tcp=80 --dry-run=client -o yaml"),
        q("create service loadbalancer balanced --tcp=80 --dry-run=server -o name"),
        q("create configmap settings --from-literal=a=1"),
        q("create deployment web"),
        q("run lone --image=web:1 --labels=app=lone --port=80"),
        q("expose pod lone --port=80 --name=lone"),
        q("autoscale deployment web --min=1 --max=3 --cpu=80%"),
        q("rollout status deployment/web --timeout=110s"),
        q("wait job/once job/jobs --for=condition=Complete --timeout=110s"),
        q("wait pod/lone --for=condition=Ready --timeout=110s"),
        q("get configmaps,secrets,services,serviceaccounts,roles,rolebindings,ingresses"),
        q("get deployments,jobs,cronjobs,poddisruptionbudgets,pods", " 2/2 2 2 ", "lone 1/1 "),
        q("get configmap settings -o yaml"),
        q("get secret password -o jsonpath={.data.password}"),
        q("get pods -l app=web -o custom-columns=PHASE:.status.phase,IMAGE:.spec.containers[*].image"),
        q("get pods --field-selector=status.phase=Running -L app --sort-by=.metadata.name", "lone "),
        q("get all", " 2/2 2 2 ", "lone 1/1 "),
        q("describe configmap settings"),
        q("describe secret password"),
        q("describe ingress web"),
        q("describe role reader"),
        q("describe rolebinding reader"),
        q("describe serviceaccount robot"),
        q("describe poddisruptionbudget web", "Allowed disruptions: 1"),
        q("delete namespace <namespace>-other --timeout=110s"),
        q("delete clusterrole,clusterrolebinding <namespace>-reader"),
        q("delete priorityclass <namespace>-high"),
        q("delete deployment,job,cronjob,ingress,quota,role,rolebinding --all --timeout=110s"),
        q("delete pod lone --timeout=110s"),
        q("get pods", "No resources found"),
    ],
    "edit": [
        q("apply -f -", text=WEB),
        q("rollout status deployment/web --timeout=110s"),
        q("apply -f -", text=WEB),
        q("diff -f -", text=WEB),
        q("diff -f -", text=WEB.replace("web:1", "web:2")),
        q("apply -f - --dry-run=server", text=WEB.replace("replicas: 2", "replicas: 3")),
        q("apply -f - --server-side --field-manager=other", text=WEB.replace("web:1", "web:2")),
        q("apply -f - --server-side --field-manager=other --force-conflicts", text=WEB.replace("web:1", "web:2")),
        q("label deployment web tier=front"),
        q("label deployment web tier=back"),
        q("label deployment web tier=back --overwrite"),
        q("label deployment web tier-"),
        q("annotate deployment web note='two words'"),
        q("annotate deployment web note-"),
        q('patch deployment web -p \'{"spec":{"replicas":3}}\''),
        q('patch deployment web --type=json -p \'[{"op":"replace","path":"/spec/replicas","value":1}]\''),
        q('patch deployment web --type=merge -p \'{"spec":{"replicas":-2}}\''),
        q("scale deployment web --replicas=4 --current-replicas=1"),
        q("scale deployment web --replicas=4 --current-replicas=1"),
        q("set env deployment/web MODE=test"),
        q("set resources deployment/web --limits=cpu=200m"),
        q("set serviceaccount deployment web default"),
        q("set selector service none app=web"),
        q("rollout status deployment/web --timeout=110s"),
        q("get deployment web -o jsonpath={.spec.template.spec.containers[0].env}"),
        q("replace -f -", text=WEB),
        q("rollout status deployment/web --timeout=110s"),
        q("get deployments -o wide", " 2/2 2 2 "),
        q("delete -f - --timeout=110s", text=WEB),
        q("delete deployment web"),
        q("delete deployment web --ignore-not-found"),
        q("top pods"),
        q("top nodes"),
        q("get none"),
        q("get deployments none"),
    ],
    "explain": [
        q(f"explain {kind}")
        for kind in (
            "statefulset.spec",
            "statefulset.spec.volumeClaimTemplates.spec.resources",
            "persistentvolumeclaim.status",
            "persistentvolume.spec.claimRef",
            "storageclass",
            "poddisruptionbudget.spec.unhealthyPodEvictionPolicy",
            "cronjob.spec",
            "job.spec.podFailurePolicy.rules",
            "controllerrevision",
            "pod.spec.tolerations",
            "node.spec.taints",
            "nope",
        )
    ],
    "stateful set": [
        q("apply -f -", text=CLASS.replace("<class>", "growing")),
        q("apply -f -", text=DATABASE.replace("<class>", "growing")),
        q(READY),
        q("get statefulsets -o wide", " 3/3 "),
        q("get pods -o wide", "db-0 1/1", "db-1 1/1", "db-2 1/1"),
        q("get persistentvolumeclaims", "data-db-0 Bound", "data-db-1 Bound", "data-db-2 Bound"),
        q("describe statefulset db", "Create Pod db-2"),
        q("describe pod db-0", "Started"),
        q("describe persistentvolumeclaim data-db-0", "ProvisioningSucceeded"),
        q("describe storageclass growing"),
        q("describe service db"),
        q(
            "get endpointslices -o custom-columns=PORTS:.ports[*].port,READY:.endpoints[*].conditions.ready",
            "true,true,",
        ),
        q("scale statefulset db --replicas=4"),
        q(READY),
        q("get persistentvolumeclaims", "data-db-3 Bound"),
        q("set image statefulset/db db=database:2"),
        q(READY),
        q("rollout history statefulset/db"),
        q("rollout undo statefulset/db"),
        q(READY),
        q("get pods -o custom-columns=NAME:.metadata.name,IMAGE:.spec.containers[0].image", "db-3 database:1"),
        q("scale statefulset db --replicas=2"),
        q("get persistentvolumeclaim data-db-2 data-db-3", '"data-db-2" not found', '"data-db-3" not found'),
        q('patch persistentvolumeclaim data-db-0 -p \'{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}\''),
        q("wait persistentvolumeclaim/data-db-0 --for=jsonpath={.status.capacity.storage}=2Gi --timeout=110s"),
        q("get persistentvolumeclaims", "data-db-0 Bound", "2Gi"),
        q('patch persistentvolumeclaim data-db-0 -p \'{"spec":{"resources":{"requests":{"storage":"1Gi"}}}}\''),
        q("get poddisruptionbudgets", "db N/A 1 1"),
        q("drain node-1 --pod-selector=app=db --delete-emptydir-data --timeout=110s"),
        q("get pods --field-selector spec.nodeName=node-1 -l app=db", "No resources found"),
        q("uncordon node-1"),
        q(READY),
        q("get pods", "db-0 1/1", "db-1 1/1"),
        q("get events --for=statefulset/db -o custom-columns=REASON:.reason,MESSAGE:.message"),
        q("delete statefulset db --timeout=110s"),
        q("get persistentvolumeclaims,pods,controllerrevisions", "No resources found"),
        q("delete storageclass growing"),
    ],
    "jobs": [
        q("apply -f -", text=JOB),
        q("wait job/parts --for=condition=Failed --timeout=110s"),
        q("get jobs -o wide", "parts Failed 2/3"),
        q("get job parts -o jsonpath={.status.completedIndexes},{.status.failedIndexes}"),
        q("describe job parts", "FailedIndexes"),
        q("delete job parts --timeout=110s"),
        q("create cronjob often --image=tool:1 --schedule='@yearly' -- sleep 1"),
        q('patch cronjob often -p \'{"spec":{"suspend":true}}\''),
        q("get cronjobs", "often @yearly"),
        q("create job manual --from=cronjob/often"),
        q("wait job/manual --for=condition=Complete --timeout=110s"),
        q("describe cronjob often"),
        q("create job unpullable --image=tool:does-not-exist"),
        q("get pods", "ImagePullBackOff"),
        q("delete jobs,cronjobs --all --timeout=110s"),
        q("get jobs,pods", "No resources found"),
    ],
    "nodes": [
        q("get nodes", "<node> Ready"),
        q("get nodes -o custom-columns=NAME:.metadata.name,POOL:.metadata.labels.pool"),
        q("label node node-2 <namespace>=yes"),
        q("taint nodes node-2 <namespace>=yes:NoSchedule"),
        q("taint nodes node-2 <namespace>=yes:NoSchedule"),
        q("taint nodes node-2 <namespace>=no:NoSchedule --overwrite"),
        q('run stuck --image=web:1 --overrides=\'{"spec":{"nodeSelector":{"<namespace>":"yes"}}}\''),
        q("events --for pod/stuck", "FailedScheduling"),
        q("describe pod stuck", "FailedScheduling"),
        q("taint nodes node-2 <namespace>-"),
        q("wait pod/stuck --for=condition=Ready --timeout=110s"),
        q("taint nodes node-2 <namespace>=out:NoExecute"),
        q("get pod stuck", "not found"),
        q("get events --field-selector reason=TaintManagerEviction -o custom-columns=MESSAGE:.message", "Marking"),
        q("taint nodes node-2 <namespace>:NoExecute-"),
        q("label node node-2 <namespace>-"),
        q("cordon none"),
        q("describe node none"),
        q("get leases -n kube-node-lease -o name"),
    ],
}
