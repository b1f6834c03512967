"""`konverge run` on a cluster: it installs CRDs if asked, and names in one line each what is missing."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from konverge import Client, CustomResource, Operator, Spec, Status, controller_for, load_config
from konverge.cli.crd_installation import install_crds
from konverge.cli.start_check import start_warnings
from konverge.client import has_condition
from konverge.k8s.apiextensions.v1 import CustomResourceDefinition
from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import Kind
from konverge_cluster import EmbeddedServer
from programs import program

OPERATOR = '''
from konverge import Context, CustomResource, Operator, Spec, Status, controller_for

class Stone(CustomResource[Spec, Status], group="run.konverge.dev", version="v1"):
    """A stone."""

@controller_for(Stone)
async def stones(stone: Stone, ctx: Context) -> None:
    ctx.log.info("a stone was reconciled")

operator = Operator(name="stones", controllers=(stones,))
'''
OPERATOR_WITH_SAMPLE = (
    OPERATOR
    + """
from dataclasses import replace
from pathlib import Path

operator = replace(operator, samples=(Path(__file__).parent / "stone.yaml",))
"""
)


class Stone(CustomResource[Spec, Status], group="run.konverge.dev", version="v1"):
    """A stone."""


FOREIGN = Kind("other.io", "v1", "Pebble", "pebbles")


def operator() -> Operator:
    controller = controller_for(Stone).owns(ConfigMap).owns(FOREIGN).build(lambda obj, ctx: None)
    return Operator(name="stones", controllers=(controller,))


@pytest.mark.real_time
async def test_a_missing_crd_and_a_wrong_namespace_are_one_line_each(tmp_path: Path) -> None:
    async with EmbeddedServer() as server:
        server.write_kubeconfig(tmp_path / "config")
        config = load_config(kubeconfig=str(tmp_path / "config"))
        assert await start_warnings(config, operator(), "app.py", ("default", "shpo")) == [
            "the server does not serve Stone.run.konverge.dev/v1 yet: add --install-crds,"
            " or run `konverge crd app.py | kubectl apply -f -` (stones.run.konverge.dev)",
            "the server does not serve Pebble.other.io/v1 yet: install its CRD",
            "namespace 'shpo' does not exist yet: run `kubectl create namespace shpo`, or correct --namespace",
        ]
        async with Client.connect(config) as client:
            await install_crds(client, operator().crds())
            await install_crds(client, operator().crds())
        assert len(await start_warnings(config, operator(), "app.py", ("default",))) == 1
    assert await start_warnings(config, operator(), "app.py", ("shpo",)) == [], "the server does not answer"


@pytest.mark.real_time
async def test_run_installs_crds_and_logs_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(OPERATOR)
    async with EmbeddedServer() as server:
        server.write_kubeconfig(tmp_path / "config")
        options = ("run", "app.py", "--kubeconfig", "config", "--metrics-port", "0", "--install-crds", "-n", "shpo")
        with program(*options, folder=tmp_path, temporary=tmp_path / "scratch") as run:
            output = await asyncio.to_thread(run.read_until, "does not exist yet")
            assert (
                "namespace 'shpo' does not exist yet: run `kubectl create namespace shpo`, or correct --namespace"
                in output
            )
            assert "does not serve" not in output
            async with Client.connect(load_config(kubeconfig=str(tmp_path / "config"))) as client:
                established = has_condition("Established")
                assert await client.wait_for(CustomResourceDefinition, "stones.run.konverge.dev", established)
            await asyncio.to_thread(run.end, signal.SIGTERM)
            assert run.process.returncode == 0


@pytest.mark.real_time
@pytest.mark.parametrize("is_absolute", [False, True], ids=["relative", "absolute"])
async def test_run_and_dev_import_a_project_with_a_src_folder_below_the_working_directory(
    tmp_path: Path, is_absolute: bool
) -> None:
    package = tmp_path / "examples" / "quarry" / "src" / "quarry"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from quarry.operator import operator")
    (package / "operator.py").write_text(OPERATOR_WITH_SAMPLE)
    (package / "stone.yaml").write_text("{apiVersion: run.konverge.dev/v1, kind: Stone, metadata: {name: one}}")
    target = str(package if is_absolute else package.relative_to(tmp_path))
    async with EmbeddedServer() as server:
        server.write_kubeconfig(tmp_path / "config")
        options = ("run", target, "--kubeconfig", "config", "--metrics-port", "0", "--install-crds")
        with program(*options, folder=tmp_path, temporary=tmp_path / "run") as run:
            async with Client.connect(load_config(kubeconfig=str(tmp_path / "config"))) as client:
                established = has_condition("Established")
                assert await client.wait_for(CustomResourceDefinition, "stones.run.konverge.dev", established)
                await client.create(Stone.new("one", Spec()))
            await asyncio.to_thread(run.read_until, "a stone was reconciled")
    with program("dev", target, folder=tmp_path, temporary=tmp_path / "dev") as dev:
        await asyncio.to_thread(dev.read_until, "a stone was reconciled")


@pytest.mark.real_time
async def test_run_exits_with_the_reason_when_a_cache_does_not_sync_in_time(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(OPERATOR)
    async with EmbeddedServer() as server:
        server.write_kubeconfig(tmp_path / "config")
        options = ("run", "app.py", "--kubeconfig", "config", "--metrics-port", "0", "--cache-sync-timeout", "1")
        with program(*options, folder=tmp_path, temporary=tmp_path / "scratch") as run:
            output = await asyncio.to_thread(run.rest)
    assert run.process.returncode == 1
    assert "add --install-crds" in output
    assert output.splitlines()[-1] == (
        "Error: controller stone: Stone.run.konverge.dev/v1 cache not synced after 1 s: the server does not serve"
        " stones.run.konverge.dev (is its CRD installed, is the version right?)"
    )
