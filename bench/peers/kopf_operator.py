"""The shop operator of the benchmark on kopf; see bench/bench_controller.py.

KUBECONFIG selects the cluster. SHOP_RESYNC is the number of seconds between two reconciles of an object, 0 for none.
SHOP_STAMPS is the file to which the start of each reconcile is written. Children are written with kubernetes_asyncio,
the usual client of asynchronous operators with kopf. Events about objects are disabled, in favour of kopf. kopf has no
suitable limit on concurrent handlers: its workers stay with their object for seconds after the last change. Therefore a
semaphore limits the handlers to eight, as in the other operators.
"""

import asyncio
import logging
import os

import kopf
from kopf_peer import connection
from kubernetes_asyncio import client, config
from kubernetes_asyncio.client import ApiException, AppsV1Api, CoreV1Api
from stamps import stamp

RESYNC = float(os.environ["SHOP_RESYNC"])
SHOPS = ("bench.example.com", "v1", "shops")

concurrency_limit = asyncio.Semaphore(8)


@kopf.on.login()
def login(**_: object) -> kopf.ConnectionInfo:
    return connection(os.environ["KUBECONFIG"])


@kopf.on.startup()
async def connect(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: object) -> None:
    settings.posting.enabled = False
    await config.load_kube_config(os.environ["KUBECONFIG"])
    memo.client = client.ApiClient()
    memo.apps, memo.core = AppsV1Api(memo.client), CoreV1Api(memo.client)


@kopf.on.cleanup()
async def disconnect(memo: kopf.Memo, **_: object) -> None:
    await memo.client.close()


@kopf.on.create(*SHOPS)
@kopf.on.update(*SHOPS, field="spec")
@kopf.on.resume(*SHOPS)
async def reconcile(body: kopf.Body, spec: kopf.Spec, patch: kopf.Patch, memo: kopf.Memo, **_: object) -> None:
    async with concurrency_limit:
        stamp(body["metadata"]["name"], body["metadata"]["generation"])
        deployment = await put_deployment(memo.apps, deployment_for(body, spec))
        await put_service(memo.core, service_for(body))
    status = {"observedGeneration": body["metadata"]["generation"], "ready": deployment.status.ready_replicas or 0}
    if any(body.status.get(name) != value for name, value in status.items()):
        patch.status.update(status)


if RESYNC:
    kopf.on.timer(*SHOPS, interval=RESYNC, initial_delay=RESYNC)(reconcile)


async def put_deployment(apps: AppsV1Api, desired: dict) -> client.V1Deployment:
    name, namespace = desired["metadata"]["name"], desired["metadata"]["namespace"]
    try:
        return await apps.create_namespaced_deployment(namespace, desired)
    except ApiException as error:
        if error.status != 409:
            raise
    return await apps.patch_namespaced_deployment(name, namespace, desired)


async def put_service(core: CoreV1Api, desired: dict) -> None:
    name, namespace = desired["metadata"]["name"], desired["metadata"]["namespace"]
    try:
        await core.create_namespaced_service(namespace, desired)
    except ApiException as error:
        if error.status != 409:
            raise
        await core.patch_namespaced_service(name, namespace, desired)


def child_of(body: kopf.Body, **more: object) -> dict:
    metadata = {"name": body["metadata"]["name"], "labels": labels_of(body)}
    child = {"metadata": metadata, **more}
    kopf.adopt(child, owner=body)
    return child


def labels_of(body: kopf.Body) -> dict:
    return {"app.kubernetes.io/name": body["metadata"]["name"], "app.kubernetes.io/managed-by": "shop-operator"}


def deployment_for(body: kopf.Body, spec: kopf.Spec) -> dict:
    labels = labels_of(body)
    container = {"name": "web", "image": spec["image"], "ports": [{"name": "http", "containerPort": 8080}]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    desired = {"replicas": spec["replicas"], "selector": {"matchLabels": labels}, "template": template}
    return child_of(body, apiVersion="apps/v1", kind="Deployment", spec=desired)


def service_for(body: kopf.Body) -> dict:
    desired = {"selector": labels_of(body), "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}
    return child_of(body, apiVersion="v1", kind="Service", spec=desired)


if __name__ == "__main__":
    logging.disable(logging.INFO)
    kopf.run(standalone=True, clusterwide=True)
