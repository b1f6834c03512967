"""The kinds of the differential fuzzer, with valid and invalid values of their fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

__all__ = [
    "ABSENT",
    "CONFIG_MAP",
    "DEPLOYMENT",
    "METADATA",
    "SERVICE",
    "WIDGET",
    "WIDGET_CRD",
    "FuzzKind",
    "container",
]

Json = dict[str, Any]
Choices = dict[str, list[Any]]


class Absence(Enum):
    """The value of an omitted field; copying returns the same object."""

    ABSENT = "nothing"


ABSENT: Final = Absence.ABSENT

METADATA: Choices = {
    "metadata.labels": [
        {"app": "web"},
        {"app": "web", "tier": "a"},
        {"tier": "b"},
        {},
        None,
        ABSENT,
        {"bad key!": "x"},
        {"a": "bad value!"},
        {"a": 5},
        "text",
    ],
    "metadata.annotations": [
        {"note": "x"},
        {"note": "y", "ex.io/other": "z"},
        {},
        None,
        ABSENT,
        {"Bad/Key/": "x"},
        {"a": True},
    ],
    "metadata.finalizers": [
        ["ex.io/hold"],
        ["ex.io/hold", "ex.io/other"],
        [],
        None,
        ABSENT,
        ABSENT,
        ["unqualified"],
        "x",
    ],
    "metadata.ownerReferences": [
        ABSENT,
        ABSENT,
        [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "11111111-1111-4111-8111-111111111111"}],
        [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": ""}],
        [
            {
                "apiVersion": "v1",
                "kind": "A",
                "name": "a",
                "uid": "11111111-1111-4111-8111-111111111111",
                "controller": True,
            },
            {
                "apiVersion": "v1",
                "kind": "B",
                "name": "b",
                "uid": "22222222-2222-4222-8222-222222222222",
                "controller": True,
            },
        ],
    ],
    "metadata.generation": [ABSENT, ABSENT, 7],
    "metadata.creationTimestamp": [ABSENT, ABSENT, None, "2020-01-01T00:00:00Z", "yesterday"],
    "metadata.deletionTimestamp": [ABSENT, ABSENT, "2020-01-01T00:00:00Z"],
    "metadata.managedFields": [ABSENT, ABSENT, [], [{}]],
    "metadata.selfLink": [ABSENT, ABSENT, "/x"],
    "metadata.bogus": [ABSENT, ABSENT, ABSENT, 1],
    "bogus": [ABSENT, ABSENT, ABSENT, 1, {"a": None}],
}


@dataclass(frozen=True)
class FuzzKind:
    """One kind: where it is, a good object, and what its fields may be changed to.

    `lists` are fields that hold lists with keys, for strategic patches; `parts` small pieces for apply.
    """

    name: str
    path: str
    api_version: str
    kind: str
    base: Json
    fields: Choices
    parts: list[Json]
    strategic: list[Json] = field(default_factory=list)
    status: list[Json] = field(default_factory=list)
    scales: bool = False
    custom: bool = False
    selectors: tuple[str, ...] = ()


def container(**more: Any) -> Json:
    """A container of a pod."""
    return {"name": "web", "image": "web:1", **more}


CONFIG_MAP = FuzzKind(
    name="configmaps",
    path="/api/v1/namespaces/{ns}/configmaps",
    api_version="v1",
    kind="ConfigMap",
    base={"data": {"a": "1", "b": "2"}},
    fields={
        "data": [
            {},
            None,
            ABSENT,
            {"a": "1"},
            {"b": "2", "c": "3"},
            {"a": 1},
            {"bad key!": "x"},
            "text",
            [],
            {"a": None},
        ],
        "binaryData": [ABSENT, ABSENT, {"x": "AAA="}, {"x": "not base64!"}, {"a": "AAA="}],
        "immutable": [ABSENT, ABSENT, ABSENT, True, False, None, "yes"],
    },
    parts=[
        {"data": {"a": "9"}},
        {"data": {"b": "8", "c": "7"}},
        {"data": {"d": "1"}},
        {"data": {}},
        {"immutable": False},
        {},
    ],
    strategic=[
        {"data": {"a": "5", "b": None}},
        {"data": {"$patch": "replace", "z": "1"}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["ex.io/hold"]}},
        {"$patch": "delete"},
        {"data": {"$patch": "bogus"}},
    ],
)

DEPLOYMENT = FuzzKind(
    name="deployments",
    path="/apis/apps/v1/namespaces/{ns}/deployments",
    api_version="apps/v1",
    kind="Deployment",
    base={
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container()]}},
        }
    },
    fields={
        "spec.replicas": [0, 1, 3, None, ABSENT, -1, "2", 2.5],
        "spec.paused": [True, False, None, ABSENT, "yes"],
        "spec.minReadySeconds": [0, 5, -1, ABSENT],
        "spec.revisionHistoryLimit": [0, 3, ABSENT, -2],
        "spec.progressDeadlineSeconds": [60, 5, ABSENT],
        "spec.selector": [{"matchLabels": {"app": "web"}}, {"matchLabels": {"app": "other"}}, {}, ABSENT],
        "spec.strategy": [
            {"type": "Recreate"},
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "10%"}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}},
            {"type": "Bogus"},
            {},
            ABSENT,
        ],
        "spec.template.metadata.labels": [{"app": "web"}, {"app": "web", "v": "2"}, {"app": "other"}, ABSENT],
        "spec.template.spec.containers": [
            [container()],
            [container(image="web:2")],
            [container(), {"name": "side", "image": "side:1"}],
            [container(env=[{"name": "A", "value": "1"}, {"name": "B", "value": ""}])],
            [container(ports=[{"containerPort": 80}, {"containerPort": 81, "name": "http", "protocol": "UDP"}])],
            [container(resources={"limits": {"cpu": "1000m", "memory": "1024Mi"}})],
            [container(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "2"}})],
            [container(command=[], args=["x"])],
            [container(livenessProbe={"httpGet": {"port": 80}})],
            [{"name": "Bad_Name", "image": "i"}],
            [{"name": "noimage"}],
            [container(), container()],
            [],
            "text",
        ],
        "spec.template.spec.volumes": [
            ABSENT,
            [{"name": "v", "emptyDir": {}}],
            [{"name": "c", "configMap": {"name": "x"}}],
            [{"name": "v"}],
            [{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}],
        ],
        "spec.template.spec.nodeSelector": [ABSENT, {}, {"disk": "ssd"}],
        "spec.template.spec.restartPolicy": [ABSENT, "Always", "Never"],
        "spec.template.spec.terminationGracePeriodSeconds": [ABSENT, 0, 10, -1, "5"],
        "status": [ABSENT, {"replicas": 4}],
    },
    parts=[
        {"spec": {"replicas": 3}},
        {"spec": {"replicas": 1, "paused": True}},
        {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:3"}]}}}},
        {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:2"}]}}}},
        {"spec": {"template": {"spec": {"containers": [{"name": "web", "env": [{"name": "A", "value": "7"}]}]}}}},
        {"spec": {"template": {"spec": {"containers": [{"name": "web", "ports": [{"containerPort": 80}]}]}}}},
        {"spec": {"strategy": {"type": "Recreate"}}},
        {"spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}}}}},
        {"spec": {"template": {"spec": {"nodeSelector": {"disk": "ssd"}}}}},
        {"spec": {"bogus": 1}},
    ],
    strategic=[
        {"spec": {"replicas": 4}},
        {"spec": {"replicas": None}},
        {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}},
        {"spec": {"template": {"spec": {"containers": [{"name": "side", "$patch": "delete"}]}}}},
        {
            "spec": {
                "template": {
                    "spec": {"containers": [{"name": "web", "image": "web:5", "env": [{"name": "A", "value": "2"}]}]}
                }
            }
        },
        {"spec": {"template": {"spec": {"containers": [{"image": "nameless"}]}}}},
        {
            "spec": {
                "template": {
                    "spec": {
                        "$setElementOrder/containers": [{"name": "side"}, {"name": "web"}],
                        "containers": [{"name": "side", "image": "side:9"}],
                    }
                }
            }
        },
        {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
        {"spec": {"template": {"spec": {"containers": [{"$patch": "replace"}, {"name": "only", "image": "only:1"}]}}}},
        {"spec": {"template": {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}}},
    ],
    status=[
        {"status": {"replicas": 2, "observedGeneration": 1}},
        {"status": {"conditions": [{"type": "Available", "status": "True"}]}},
        {"status": {"replicas": -1}},
        {"status": {"availableReplicas": 3, "readyReplicas": 1, "replicas": 2}},
        {"status": {"bogus": 1}},
        {"spec": {"replicas": 9}, "metadata": {"labels": {"x": "y"}, "annotations": {"s": "t"}}},
    ],
    scales=True,
)

SERVICE = FuzzKind(
    name="services",
    path="/api/v1/namespaces/{ns}/services",
    api_version="v1",
    kind="Service",
    base={"spec": {"ports": [{"port": 80}], "selector": {"app": "web"}, "clusterIP": "None"}},
    fields={
        "spec.ports": [
            [{"port": 80}],
            [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}],
            [{"port": 80}, {"port": 81}],
            [{"port": 80, "targetPort": "http"}],
            [{"port": 80, "targetPort": 8080, "protocol": "UDP", "appProtocol": "ex.io/x"}],
            [{"port": 0}],
            [{"port": 80, "protocol": "BOGUS"}],
            [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}],
            [],
            ABSENT,
        ],
        "spec.selector": [{"app": "web"}, {}, ABSENT, {"app": "other"}],
        "spec.sessionAffinity": ["None", "ClientIP", "Bogus", ABSENT],
        "spec.publishNotReadyAddresses": [True, False, ABSENT],
        "spec.externalIPs": [ABSENT, ["1.2.3.4"], ["bad"]],
        "spec.type": ["ClusterIP", "ExternalName", "Bogus", ABSENT],
        "spec.externalName": [ABSENT, ABSENT, "example.com"],
        "spec.internalTrafficPolicy": [ABSENT, "Local", "Bogus"],
        "spec.ipFamilyPolicy": [ABSENT, "SingleStack", "Bogus"],
        "status": [ABSENT, {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}],
    },
    parts=[
        {"spec": {"ports": [{"port": 80}]}},
        {"spec": {"ports": [{"port": 80, "name": "a"}, {"port": 82, "name": "c"}]}},
        {"spec": {"selector": {"app": "web"}, "clusterIP": "None", "ports": [{"port": 80}]}},
        {"spec": {"selector": {"tier": "a"}}},
        {"spec": {"sessionAffinity": "ClientIP"}},
    ],
    strategic=[
        {"spec": {"ports": [{"port": 81, "name": "b"}]}},
        {"spec": {"ports": [{"port": 80, "name": "a"}]}},
        {"spec": {"ports": [{"port": 80, "$patch": "delete"}]}},
        {"spec": {"selector": {"app": None, "x": "y"}}},
    ],
    status=[{"status": {"loadBalancer": {"ingress": [{"hostname": "x"}]}}}],
)

WIDGET_CRD: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.fuzz.test"},
    "spec": {
        "group": "fuzz.test",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.size",
                        "statusReplicasPath": ".status.size",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Mode", "type": "string", "jsonPath": ".spec.mode", "priority": 1},
                ],
                "selectableFields": [{"jsonPath": ".spec.mode"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["size"],
                                "properties": {
                                    "size": {"type": "integer", "minimum": 0, "maximum": 10, "default": 3},
                                    "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
                                    "name": {"type": "string", "maxLength": 5, "pattern": "^[a-z]+$"},
                                    "ports": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["port", "proto"],
                                        "items": {
                                            "type": "object",
                                            "required": ["port"],
                                            "properties": {
                                                "port": {"type": "integer"},
                                                "proto": {"type": "string", "default": "TCP"},
                                                "note": {"type": "string"},
                                            },
                                        },
                                    },
                                    "tags": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "set",
                                        "items": {"type": "string"},
                                    },
                                    "plain": {"type": "array", "maxItems": 3, "items": {"type": "integer"}},
                                    "maybe": {"type": "string", "nullable": True, "default": "dd"},
                                    "either": {"x-kubernetes-int-or-string": True},
                                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                    "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                                    "whole": {
                                        "type": "object",
                                        "x-kubernetes-map-type": "atomic",
                                        "properties": {"x": {"type": "string"}, "y": {"type": "number"}},
                                    },
                                    "date": {"type": "string", "format": "date-time"},
                                    "flag": {"type": "boolean"},
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {
                                    "size": {"type": "integer"},
                                    "phase": {"type": "string", "maxLength": 8},
                                    "selector": {"type": "string"},
                                },
                            },
                        },
                    }
                },
            }
        ],
    },
}

WIDGET = FuzzKind(
    name="widgets",
    path="/apis/fuzz.test/v1/namespaces/{ns}/widgets",
    api_version="fuzz.test/v1",
    kind="Widget",
    base={"spec": {"size": 2}},
    fields={
        "spec.size": [0, 1, 5, 11, -1, "3", 2.5, None, ABSENT],
        "spec.mode": ["a", "b", "c", 1, None, ABSENT],
        "spec.name": ["abc", "toolong", "ABC", "", None, ABSENT],
        "spec.ports": [
            [{"port": 80}],
            [{"port": 80, "proto": "UDP", "note": "x"}, {"port": 80}],
            [{"port": 80}, {"port": 80, "proto": "TCP"}],
            [{"proto": "TCP"}],
            [],
            None,
            ABSENT,
        ],
        "spec.tags": [["x"], ["x", "z"], ["x", "x"], [], [1], None, ABSENT],
        "spec.plain": [[1, 2], [1, 2, 3, 4], ["x"], ABSENT],
        "spec.maybe": [None, "set", 5, ABSENT],
        "spec.either": [5, "50%", True, ABSENT],
        "spec.free": [{"a": {"b": [1, {"c": None}]}}, {}, ABSENT, "text"],
        "spec.map": [{"a": 1}, {"a": "x"}, {}, ABSENT],
        "spec.whole": [{"x": "1", "y": 1.5}, {"y": 2}, {"z": 1}, ABSENT],
        "spec.date": ["2026-01-01T00:00:00Z", "nope", ABSENT],
        "spec.flag": [True, False, "true", ABSENT],
        "spec.bogus": [ABSENT, ABSENT, 1],
        "spec": [ABSENT, None, {}, "text"],
        "status": [ABSENT, {"phase": "New"}, {"phase": 5}],
    },
    parts=[
        {"spec": {"size": 4}},
        {"spec": {"size": 5, "mode": "b"}},
        {"spec": {"size": 1, "ports": [{"port": 80, "note": "one"}]}},
        {"spec": {"size": 1, "ports": [{"port": 81, "proto": "UDP"}]}},
        {"spec": {"tags": ["x"]}},
        {"spec": {"tags": ["z", "w"]}},
        {"spec": {"map": {"a": 1}}},
        {"spec": {"map": {"b": 2}}},
        {"spec": {"whole": {"x": "1"}}},
        {"spec": {"whole": {"y": 2}}},
        {"spec": {"free": {"a": {"b": 1}}}},
        {"spec": {"free": {"a": {"c": [1]}}}},
        {"spec": {"plain": [3]}},
        {"spec": {"bogus": 1}},
        {"spec": {"size": 99}},
        {},
    ],
    status=[
        {"status": {"phase": "Ready", "size": 2, "selector": "app=web"}},
        {"status": {"phase": "much too long"}},
        {"status": {"phase": 5}},
        {"status": {"bogus": 1}},
        {"status": None},
        {"spec": {"size": 9}, "metadata": {"labels": {"x": "y"}}},
    ],
    scales=True,
    custom=True,
    selectors=("spec.mode=a", "spec.mode!=a", "spec.size=1"),
)
