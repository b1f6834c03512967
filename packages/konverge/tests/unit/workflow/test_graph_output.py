"""Drawings of a workflow, plain and with the state of an object; the command `konverge graph`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from konverge import Client, crd_for
from konverge.cli.graph import graph
from konverge.client import ClientOptions, InProcessTransport
from konverge.workflow import ComponentPhase, ComponentStatus, render_mermaid, render_svg
from konverge_cluster import EmbeddedServer
from shops import Phase, Shop, ShopStatus, shop, workflow

SHOPS = str(Path(__file__).parents[5] / "tests" / "support" / "shops.py") + ":command_line_operator"
STATUS = ShopStatus(
    phase=Phase.DEGRADED,
    components=[
        ComponentStatus(name="database", phase=ComponentPhase.READY, ready=True),
        ComponentStatus(name="backend", phase=ComponentPhase.DEGRADED),
    ],
)


def test_mermaid_has_components_and_phases() -> None:
    text = render_mermaid(workflow)

    assert "flowchart BT\n" in text
    assert '    database["database"]\n' in text
    assert "    monitoring --> frontend\n" in text
    assert "    [*] --> Pending\n" in text
    assert "    Running --> Degraded\n" in text
    assert "    Deleting --> [*]\n" in text
    assert "fill" not in text


def test_a_live_object_colours_the_drawing() -> None:
    text = render_mermaid(workflow, STATUS)

    assert '    backend["backend: Degraded"]\n    style backend fill:#fce5cd\n' in text
    assert "    class Degraded current\n" in text


def test_svg_puts_what_a_component_needs_below_it() -> None:
    root = ElementTree.fromstring(render_svg(workflow, STATUS))
    space = "{http://www.w3.org/2000/svg}"
    tops = [int(one.get("y") or 0) for one in root.iter(f"{space}rect")]
    texts = [one.text for one in root.iter(f"{space}text")]
    heights = dict(zip(texts, tops, strict=True))

    assert heights["database: Ready"] > heights["backend: Degraded"] == heights["search"] > heights["frontend"]
    assert len(list(root.iter(f"{space}path"))) == 1 + 5  # one is the head of an arrow


@pytest.mark.parametrize(("format_", "start"), [("mermaid", "```mermaid\n"), ("svg", "<svg ")])
def test_the_command_prints_a_drawing(format_: str, start: str) -> None:
    result = CliRunner().invoke(graph, [SHOPS, "--format", format_])

    assert result.exit_code == 0, result.output
    assert result.output.startswith(start)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([SHOPS, "--kind", "Other"], "has no workflow for 'Other': add --kind Shop"),
        ([SHOPS, "--object", "a/b/c"], "Invalid value for '--object'"),
        (["konverge_operators.nothing"], "konverge_operators.nothing"),
    ],
)
def test_bad_input_is_one_clear_line(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(graph, arguments)

    assert result.exit_code != 0
    assert message in result.output
    assert "Traceback" not in result.output


@pytest.mark.real_time
async def test_a_live_object_is_read_from_the_server(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    async with EmbeddedServer() as server:
        server.write_kubeconfig(kubeconfig)
        client = Client(InProcessTransport(server.handle), options=ClientOptions(namespace="default"))
        await client.create(crd_for(Shop))
        created = await client.create(shop())
        created.status = STATUS
        await client.update_status(created)
        arguments = [SHOPS, "--object", "default/web", "--kubeconfig", str(kubeconfig)]
        found = await asyncio.to_thread(CliRunner().invoke, graph, arguments)
        missing = await asyncio.to_thread(CliRunner().invoke, graph, [*arguments[:2], "default/gone", *arguments[3:]])
    gone = await asyncio.to_thread(CliRunner().invoke, graph, arguments)

    assert 'backend["backend: Degraded"]' in found.output
    assert missing.exit_code == 1
    assert 'shops.example.com "gone" not found' in missing.output
    assert gone.exit_code == 1
    assert "does not answer" in gone.output
