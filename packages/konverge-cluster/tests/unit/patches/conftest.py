"""Topologies that the tests of the patch engines share."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from konverge_cluster.patches import Endpoint, Schemas, Topology, custom_resource_topology, make_set
from repository import DATA

OPENAPI = DATA / "openapi-v3-1.36.json.gz"


@pytest.fixture(scope="session")
def schemas() -> Schemas:
    with gzip.open(OPENAPI) as file:
        return Schemas(json.load(file))


@pytest.fixture(scope="session")
def config_map_endpoint(schemas: Schemas) -> Endpoint:
    return Endpoint("v1", "ConfigMap", {"v1": schemas.topology("io.k8s.api.core.v1.ConfigMap")})


@pytest.fixture(scope="session")
def deployment(schemas: Schemas) -> Endpoint:
    topology = schemas.topology("io.k8s.api.apps.v1.Deployment")
    return Endpoint("apps/v1", "Deployment", {"apps/v1": topology}, reset={"apps/v1": make_set("status")})


STRING, INTEGER = {"type": "string"}, {"type": "integer"}
ITEM = {
    "type": "object",
    "properties": {
        "name": STRING,
        "value": STRING,
        "words": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
    },
}
WIDGET: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": INTEGER,
                "name": STRING,
                "items": {
                    "type": "array",
                    "items": ITEM,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                },
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {
                        "type": "object",
                        "properties": {
                            "port": INTEGER,
                            "protocol": {"type": "string", "default": "TCP"},
                            "note": STRING,
                        },
                    },
                },
                "tags": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
                "atoms": {"type": "array", "items": STRING},
                "labels": {"type": "object", "additionalProperties": STRING},
                "whole": {"type": "object", "additionalProperties": STRING, "x-kubernetes-map-type": "atomic"},
                "free": {"x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {"type": "object", "properties": {"phase": STRING}},
    },
}


@pytest.fixture(scope="session")
def widget_topology(schemas: Schemas) -> Topology:
    return custom_resource_topology(WIDGET, schemas)


@pytest.fixture(scope="session")
def widget(widget_topology: Topology) -> Endpoint:
    versions = dict.fromkeys(("ex.io/v1", "ex.io/v2"), widget_topology)
    return Endpoint("ex.io/v1", "Widget", versions, reset={"ex.io/v1": make_set("status")})
