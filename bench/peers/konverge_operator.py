"""The shop operator of the benchmark on konverge; see bench/bench_controller.py.

Usage: konverge_operator.py [workers]. KUBECONFIG selects the cluster. SHOP_RESYNC is the number of seconds after which
an object is reconciled again, 0 for never. SHOP_STAMPS is the file to which the start of each reconcile is written.
With SHOP_PROFILE, a profile of each run is written to a file with this prefix.
"""

from __future__ import annotations

import cProfile
import os
import sys

from stamps import stamp

from konverge import Context, Manager, ObjectMeta, Reconciler, Result, controller_for
from konverge.k8s.apps.v1 import Deployment, DeploymentSpec
from konverge.k8s.core.v1 import Container, ContainerPort, PodSpec, PodTemplateSpec, Service, ServicePort, ServiceSpec
from konverge.k8s.meta.v1 import LabelSelector
from shops import Shop

RESYNC = float(os.environ["SHOP_RESYNC"])
WORKERS = int(sys.argv[1]) if len(sys.argv) > 1 else 8


class ShopReconciler(Reconciler[Shop]):
    async def reconcile(self, shop: Shop, ctx: Context) -> Result:
        stamp(shop.name, shop.metadata.generation)
        deployment = await ctx.apply(deployment_for(shop))
        await ctx.apply(service_for(shop))
        shop.status.observed_generation = shop.metadata.generation or 0
        shop.status.ready = (deployment.status.ready_replicas if deployment.status else None) or 0
        await ctx.update_status(shop)
        return Result.requeue(after=RESYNC) if RESYNC else Result.done()


def labels_of(shop: Shop) -> dict[str, str]:
    return {"app.kubernetes.io/name": shop.name, "app.kubernetes.io/managed-by": "shop-operator"}


def deployment_for(shop: Shop) -> Deployment:
    labels = labels_of(shop)
    container = Container(name="web", image=shop.spec.image, ports=[ContainerPort(name="http", container_port=8080)])
    return Deployment(
        metadata=ObjectMeta(name=shop.name, namespace=shop.namespace, labels=labels),
        spec=DeploymentSpec(
            replicas=shop.spec.replicas,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[container])),
        ),
    )


def service_for(shop: Shop) -> Service:
    port = ServicePort(name="http", port=80, target_port="http")
    return Service(
        metadata=ObjectMeta(name=shop.name, namespace=shop.namespace, labels=labels_of(shop)),
        spec=ServiceSpec(selector=labels_of(shop), ports=[port]),
    )


def main() -> None:
    manager = Manager(name="shop-operator")
    manager.add(
        controller_for(Shop).owns(Deployment).owns(Service).max_concurrent_reconciles(WORKERS).build(ShopReconciler())
    )
    manager.run()


if __name__ == "__main__":
    if "SHOP_PROFILE" in os.environ:
        cProfile.run("main()", f"{os.environ['SHOP_PROFILE']}-{os.getpid()}")
    else:
        main()
