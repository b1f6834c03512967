"""Redis servers for tests: samples, and the operator on a real control plane."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

import konverge_operators.redis
from konverge import Client, ObjectMeta, Unstructured, load_config
from konverge.cli.manifests import Release, files_of
from konverge.k8s.core.v1 import Namespace
from konverge.manager import Operator
from konverge.objects import from_wire
from konverge.testing import ControlPlane
from konverge_cluster.nodes import SimulatedNodes
from konverge_operators.redis.cache.api import Cache
from konverge_operators.redis.cluster.api import RedisCluster

HOME = "redis-system"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
SAMPLES = Path(konverge_operators.redis.__file__).parent / "samples"


def cache_sample(file: str = "cache.yaml", **spec: Any) -> Cache:
    """Return a Cache of the samples, with some fields of its spec changed."""
    document = yaml.safe_load((SAMPLES / file).read_text())
    document["spec"].update(spec)
    return from_wire(Cache, document)


def cluster_sample(file: str = "redis-cluster.yaml", **spec: Any) -> RedisCluster:
    """Return a RedisCluster of the samples, with some fields of its spec changed."""
    document = yaml.safe_load((SAMPLES / file).read_text())
    document["spec"].update(spec)
    return from_wire(RedisCluster, document)


@asynccontextmanager
async def operating_on(plane: ControlPlane, operator: Operator, namespace: str) -> AsyncGenerator[Client]:
    """Run the operator as its service account, with the generated permissions; return an administrator's client."""
    files = files_of(Release(operator=operator, target="konverge_operators.redis", namespace=HOME, image="r:1"))
    account = f"system:serviceaccount:{HOME}:{operator.name}"
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{HOME}", "system:authenticated"]
    async with Client.connect(load_config(kubeconfig=plane.kubeconfig, namespace=namespace)) as admin:
        for name in ("namespace", "rbac", "operator", "crds"):
            for one in yaml.safe_load_all(files[f"base/{name}.yaml"]):
                await admin.apply(Unstructured(one), force=True)
        await admin.create(Namespace(metadata=ObjectMeta(name=namespace, labels=RESTRICTED)))
        manager = operator.manager(load_config(kubeconfig=plane.kubeconfig_for(account, groups=groups)))
        async with SimulatedNodes(admin, nodes=1).running(), manager.running():
            yield admin
