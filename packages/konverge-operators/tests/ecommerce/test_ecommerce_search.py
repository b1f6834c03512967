"""The how-to of the README: a component "search" is one function and one entry of the workflow."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path
from textwrap import indent

import konverge_operators.ecommerce
from konverge import Context
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import Service
from konverge.objects import AnyObject
from konverge.workflow import Component
from konverge_cluster.testing import TestCluster
from konverge_operators.ecommerce.api import EcommerceApp, Phase
from konverge_operators.ecommerce.names import Part
from konverge_operators.ecommerce.operator import EcommerceReconciler, new_operator, workflow
from shop_apps import NAME, NAMESPACE, prepare, sample


async def search_objects(app: EcommerceApp, ctx: Context) -> list[AnyObject]:
    part = Part(app, "search")
    container = {"name": "search", "image": "meilisearch:v1.12", "ports": [{"name": "http", "containerPort": 7700}]}
    spec = {"selector": {"matchLabels": part.selector}, "template": part.template(container)}
    return [part.child(Deployment, spec=spec), part.service(7700)]


SEARCH: Component[EcommerceApp] = Component("search", search_objects, kinds=(Deployment, Service), needs=("database",))


class SearchReconciler(EcommerceReconciler):
    workflow = replace(workflow, components=(*workflow.components, SEARCH))


async def test_the_component_of_the_how_to_runs(cluster: TestCluster) -> None:
    client = cluster.client()
    await prepare(client)
    async with cluster.operator(new_operator(SearchReconciler())):
        await client.create(sample())
        await cluster.settle()
        app = await client.get(EcommerceApp, NAME, namespace=NAMESPACE)
    assert app.status.phase is Phase.RUNNING
    assert [one.name for one in app.status.components if one.ready][-1] == "search"


def test_the_readme_has_this_function() -> None:
    readme = (Path(konverge_operators.ecommerce.__file__).parent / "README.md").read_text()
    assert indent(inspect.getsource(search_objects), "    ").strip() in readme
