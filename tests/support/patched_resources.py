"""The resources of patch tests: three built-in ones and a custom one whose schema has every type of list and map."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from konverge_cluster.patches import Endpoint, custom_resource_topology, make_set
from patch_writes import Json, PatchedResource, ResourcePath, Server

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {},
    "spec": {
        "selector": {"matchLabels": {"app": "x"}},
        "template": {
            "metadata": {"labels": {"app": "x"}},
            "spec": {"containers": [{"name": "a", "image": "i0"}], "volumes": [{"name": "v", "emptyDir": {}}]},
        },
    },
}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}
# All that the server would allocate is said: it does so after it looked at owners.
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {},
    "spec": {
        "clusterIP": "None",
        "clusterIPs": ["None"],
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{"name": "z", "port": 1}],
    },
}
GROUP = "patches.konverge.dev"
THING = {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {}}
INTEGER, STRING = {"type": "integer"}, {"type": "string"}


def listed(kind: str, items: Json, *keys: str) -> Json:
    made = {"type": "array", "items": items, "x-kubernetes-list-type": kind}
    return {**made, "x-kubernetes-list-map-keys": list(keys)} if keys else made


def struct(properties: Json, *required: str, **more: Any) -> Json:
    made = {"type": "object", "properties": properties, **more}
    return {**made, "required": list(required)} if required else made


OPEN = {"x-kubernetes-preserve-unknown-fields": True}
SPEC = struct(
    {
        "replicas": INTEGER,
        "name": STRING,
        "amount": {"x-kubernetes-int-or-string": True},
        "ratio": {"type": "number"},
        "empty": {"type": "string", "nullable": True},
        "open": {"type": "object", **OPEN},
        "free": OPEN,
        "tags": listed("set", STRING),
        "numbers": listed("set", INTEGER),
        "atoms": listed("atomic", STRING),
        "records": {"type": "array", "items": struct({"a": INTEGER})},
        "items": listed(
            "map",
            struct(
                {
                    "name": STRING,
                    "value": STRING,
                    "marks": {"type": "object", "additionalProperties": INTEGER},
                    "parts": listed("map", struct({"id": INTEGER, "size": INTEGER}, "id"), "id"),
                    "words": listed("set", STRING),
                },
                "name",
            ),
            "name",
        ),
        "ports": listed(
            "map",
            struct({"port": INTEGER, "protocol": {**STRING, "default": "TCP"}, "note": STRING}, "port"),
            "port",
            "protocol",
        ),
        "labels": {"type": "object", "additionalProperties": STRING},
        "whole": {"type": "object", "additionalProperties": STRING, "x-kubernetes-map-type": "atomic"},
        "pair": struct({"a": INTEGER, "b": INTEGER}, **{"x-kubernetes-map-type": "atomic"}),
        "struct": struct({"a": INTEGER, "b": STRING, "c": {"type": "object", "additionalProperties": STRING}}),
        "structs": {"type": "object", "additionalProperties": struct({"x": INTEGER, "y": INTEGER})},
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": True, **OPEN},
    }
)
SCHEMA = struct({"spec": SPEC, "status": struct({"phase": STRING, "replicas": INTEGER})})
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"things.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [
            {
                "name": version,
                "served": True,
                "storage": version == "v1",
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
            }
            for version in ("v1", "v2")
        ],
    },
}


def built_in(server: Server, group: str, schema: str, plural: str, base: Json) -> PatchedResource:
    version = base["apiVersion"]
    versions = {version: server.schemas(group).topology(schema)}
    endpoint = Endpoint(version, base["kind"], versions, reset={version: make_set("status")})
    return PatchedResource(server, [ResourcePath(f"/{group}/namespaces/default/{plural}", endpoint)], base)


def deployments_on(server: Server) -> PatchedResource:
    resource = built_in(server, "apis/apps/v1", "io.k8s.api.apps.v1.Deployment", "deployments", DEPLOYMENT)
    [main] = resource.resource_paths
    reset = {"apps/v1": make_set("spec", "metadata.labels")}
    status = replace(main, endpoint=replace(main.endpoint, subresource="status", reset=reset))
    return replace(resource, resource_paths=[main, main, main, status])


def config_maps_on(server: Server) -> PatchedResource:
    return built_in(server, "api/v1", "io.k8s.api.core.v1.ConfigMap", "configmaps", CONFIG_MAP)


def services_on(server: Server) -> PatchedResource:
    return built_in(server, "api/v1", "io.k8s.api.core.v1.Service", "services", SERVICE)


def things_on(server: Server) -> PatchedResource:
    status, answer = server.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
    assert status in (201, 409), answer
    topology = custom_resource_topology(SCHEMA, server.schemas("api/v1"))
    versions = {f"{GROUP}/{name}": topology for name in ("v1", "v2")}
    resource_paths = []
    for version in versions:
        main = Endpoint(version, "Thing", versions, reset={version: make_set("status")})
        reset = dict.fromkeys(versions, make_set("metadata", "spec"))
        collection = f"/apis/{version}/namespaces/default/things"
        resource_paths += [
            ResourcePath(collection, main),
            ResourcePath(collection, replace(main, subresource="status", reset=reset)),
        ]
        while server.request("GET", collection)[0] != 200:
            pass
    return PatchedResource(server, resource_paths, THING)
