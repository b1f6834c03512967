"""More kinds for the differential fuzzer: pods, workloads, secrets."""

from __future__ import annotations

from typing import Any

from fuzz_kinds import ABSENT, FuzzKind, container

__all__ = ["JOB", "POD", "SECRET", "STATEFUL_SET"]

SECRET = FuzzKind(
    name="secrets",
    path="/api/v1/namespaces/{ns}/secrets",
    api_version="v1",
    kind="Secret",
    base={"data": {"a": "MQ=="}},
    fields={
        "data": [
            {},
            None,
            ABSENT,
            {"a": "MQ=="},
            {"b": "Mg==", "c": ""},
            {"a": "not base64!"},
            {"bad key!": "MQ=="},
            "x",
        ],
        "stringData": [ABSENT, {"a": "text"}, {"d": "x"}, {}, {"a": 5}],
        "type": [ABSENT, "Opaque", "ex.io/own", "kubernetes.io/tls", "kubernetes.io/basic-auth", ""],
        "immutable": [ABSENT, ABSENT, True, False, "yes"],
    },
    parts=[{"data": {"a": "Mg=="}}, {"stringData": {"b": "x"}}, {"type": "Opaque"}, {"data": {"c": "Mw=="}}, {}],
    strategic=[{"data": {"a": None}}, {"stringData": {"z": "1"}}, {"data": {"$patch": "replace", "n": "MQ=="}}],
    selectors=("type=Opaque", "type!=Opaque"),
)

POD = FuzzKind(
    name="pods",
    path="/api/v1/namespaces/{ns}/pods",
    api_version="v1",
    kind="Pod",
    base={"spec": {"containers": [container()]}},
    fields={
        "spec.containers": [
            [container()],
            [container(image="web:2")],
            [container(), {"name": "side", "image": "side:1"}],
            [container(env=[{"name": "A", "value": "1"}, {"name": "A B", "value": ""}])],
            [container(ports=[{"containerPort": 80}, {"containerPort": 0}])],
            [container(resources={"limits": {"cpu": "500m"}, "requests": {"cpu": "0.25"}})],
            [container(resources={"limits": {"cpu": "x"}})],
            [container(readinessProbe={"tcpSocket": {"port": "http"}})],
            [container(volumeMounts=[{"name": "v", "mountPath": "/v"}])],
            [container(imagePullPolicy="Bogus")],
            [],
        ],
        "spec.initContainers": [ABSENT, ABSENT, [{"name": "init", "image": "init:1"}], [container()]],
        "spec.volumes": [ABSENT, [{"name": "v", "emptyDir": {}}], [{"name": "v", "secret": {"secretName": "s"}}]],
        "spec.restartPolicy": [ABSENT, "Never", "OnFailure", "Bogus"],
        "spec.nodeName": [ABSENT, ABSENT, "n1"],
        "spec.nodeSelector": [ABSENT, {"disk": "ssd"}, {"bad key!": "x"}],
        "spec.tolerations": [ABSENT, [{"operator": "Exists"}], [{"key": "a", "operator": "Bogus"}]],
        "spec.activeDeadlineSeconds": [ABSENT, 5, 0, 10],
        "spec.terminationGracePeriodSeconds": [ABSENT, 0, 5, -1],
        "spec.hostNetwork": [ABSENT, True, False],
        "spec.hostname": [ABSENT, "host", "Bad_Host"],
        "spec.dnsPolicy": [ABSENT, "None", "Default"],
        "spec.priority": [ABSENT, ABSENT, 5],
        "spec.schedulerName": [ABSENT, "mine"],
        "status": [ABSENT, {"phase": "Running"}],
    },
    parts=[
        {"spec": {"containers": [{"name": "web", "image": "web:3"}]}},
        {"spec": {"containers": [{"name": "web", "image": "web:1", "ports": [{"containerPort": 80}]}]}},
        {"spec": {"activeDeadlineSeconds": 20}},
        {"spec": {"nodeSelector": {"disk": "ssd"}}},
        {"metadata": {"labels": {"app": "web"}}},
    ],
    strategic=[
        {"spec": {"containers": [{"name": "web", "image": "web:9"}]}},
        {"spec": {"activeDeadlineSeconds": 7}},
        {"metadata": {"labels": {"x": "y"}}},
        {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}},
        {"spec": {"containers": [{"name": "side", "image": "side:1"}]}},
    ],
    status=[
        {"status": {"phase": "Running", "podIP": "10.1.2.3"}},
        {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        {
            "status": {
                "containerStatuses": [{"name": "web", "ready": True, "restartCount": 1, "image": "i", "imageID": ""}]
            }
        },
        {"status": {"phase": "Bogus"}},
        {"spec": {"nodeName": "x"}, "metadata": {"labels": {"s": "t"}}},
    ],
    selectors=("status.phase=Pending", "spec.nodeName=n1", "spec.nothing=1", "spec.restartPolicy=Always"),
)


def _template(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container()], **spec}}


JOB = FuzzKind(
    name="jobs",
    path="/apis/batch/v1/namespaces/{ns}/jobs",
    api_version="batch/v1",
    kind="Job",
    base={"spec": {"template": {"spec": {"containers": [container()], "restartPolicy": "Never"}}}},
    fields={
        "spec.parallelism": [ABSENT, 0, 2, -1, "x"],
        "spec.completions": [ABSENT, 1, 3, -1],
        "spec.backoffLimit": [ABSENT, 0, 3, -1],
        "spec.suspend": [ABSENT, True, False],
        "spec.completionMode": [ABSENT, "Indexed", "NonIndexed", "Bogus"],
        "spec.activeDeadlineSeconds": [ABSENT, 5, -1],
        "spec.ttlSecondsAfterFinished": [ABSENT, 0, 5, -1],
        "spec.manualSelector": [ABSENT, ABSENT, True],
        "spec.selector": [ABSENT, ABSENT, {"matchLabels": {"a": "b"}}],
        "spec.template.spec.restartPolicy": ["Never", "OnFailure", "Always", ABSENT],
        "spec.template.spec.containers": [[container()], [container(image="web:2")], []],
    },
    parts=[
        {"spec": {"parallelism": 2}},
        {"spec": {"suspend": True}},
        {"spec": {"backoffLimit": 1}},
        {"spec": {"x": 1}},
    ],
    strategic=[{"spec": {"parallelism": 3}}, {"spec": {"suspend": None}}, {"metadata": {"labels": {"x": "y"}}}],
    status=[
        {"status": {"active": 1, "ready": 1}},
        {"status": {"succeeded": 1}},
        {"status": {"succeeded": 0, "failed": 2}},
        {"status": {"failed": -1}},
        {"status": {"startTime": "2026-01-01T00:00:00Z"}},
        {"status": {"conditions": [{"type": "Complete", "status": "True"}]}},
        {"status": {"conditions": [{"type": "SuccessCriteriaMet", "status": "True"}]}},
        {
            "status": {
                "startTime": "2026-01-01T00:00:00Z",
                "completionTime": "2026-01-01T00:01:00Z",
                "conditions": [
                    {"type": "SuccessCriteriaMet", "status": "True"},
                    {"type": "Complete", "status": "True"},
                ],
            }
        },
        {"status": {"conditions": [{"type": "Failed", "status": "True"}, {"type": "FailureTarget", "status": "True"}]}},
    ],
)

STATEFUL_SET = FuzzKind(
    name="statefulsets",
    path="/apis/apps/v1/namespaces/{ns}/statefulsets",
    api_version="apps/v1",
    kind="StatefulSet",
    base={"spec": {"serviceName": "s", "selector": {"matchLabels": {"app": "web"}}, "template": _template()}},
    fields={
        "spec.replicas": [ABSENT, 0, 3, -1],
        "spec.serviceName": ["s", "other", ABSENT],
        "spec.podManagementPolicy": [ABSENT, "Parallel", "Bogus"],
        "spec.updateStrategy": [
            ABSENT,
            {"type": "OnDelete"},
            {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}},
            {"type": "Bogus"},
        ],
        "spec.revisionHistoryLimit": [ABSENT, 0, 5, -1],
        "spec.minReadySeconds": [ABSENT, 0, 5, -1],
        "spec.selector": [{"matchLabels": {"app": "web"}}, {"matchLabels": {"app": "other"}}, ABSENT],
        "spec.template": [_template(), _template(nodeSelector={"a": "b"}), _template(restartPolicy="Never")],
        "spec.volumeClaimTemplates": [
            ABSENT,
            [{"metadata": {"name": "d"}, "spec": {"accessModes": ["ReadWriteOnce"]}}],
            [
                {
                    "metadata": {"name": "d"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
                }
            ],
        ],
        "spec.persistentVolumeClaimRetentionPolicy": [ABSENT, {"whenDeleted": "Delete"}, {"whenScaled": "Bogus"}],
    },
    parts=[{"spec": {"replicas": 2}}, {"spec": {"podManagementPolicy": "Parallel"}}, {"spec": {"minReadySeconds": 3}}],
    strategic=[
        {"spec": {"replicas": 4}},
        {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:7"}]}}}},
        {"spec": {"serviceName": "other"}},
    ],
    status=[{"status": {"replicas": 2, "readyReplicas": 1}}, {"status": {"replicas": 1, "readyReplicas": 2}}],
    scales=True,
)
