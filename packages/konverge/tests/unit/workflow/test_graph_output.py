"""Drawings of a workflow, plain and with the state of an object; the command `konverge graph`."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from konverge import Client, crd_for
from konverge.cli.graph import graph
from konverge.client import ClientOptions, InProcessTransport
from konverge.workflow import ComponentPhase, ComponentStatus, Phases, render_mermaid, render_svg
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


SPACE = "{http://www.w3.org/2000/svg}"


def boxes(svg: str) -> dict[str | None, ElementTree.Element]:
    """Return the boxes of a picture by their text."""
    root = ElementTree.fromstring(svg)
    texts = [one.text for one in root.iter(f"{SPACE}text")]
    return dict(zip(texts, root.iter(f"{SPACE}rect"), strict=True))


def test_svg_puts_what_a_component_needs_below_it() -> None:
    heights = {text: int(box.get("y") or 0) for text, box in boxes(render_svg(workflow, STATUS)).items()}

    assert heights["database: Ready"] > heights["backend: Degraded"] == heights["search"] > heights["frontend"]
    assert min(heights[phase] for phase in Phase) > heights["database: Ready"]


def test_svg_has_every_phase_and_transition_and_colours_the_current_one() -> None:
    found = boxes(render_svg(workflow, STATUS))
    assert {phase: found[phase].get("fill") for phase in Phase} == {
        phase: "#fff2cc" if phase is Phase.DEGRADED else "#ffffff" for phase in Phase
    }
    assert found["Pending"].get("stroke-width") == "3"
    assert [text for text, box in found.items() if box.get("stroke-dasharray")] == ["Deleting"]

    lines = [one for one in ElementTree.fromstring(render_svg(workflow)).iter(f"{SPACE}path") if one.get("stroke")]
    needs = sum(map(len, workflow.needs.values()))
    transitions = sum(map(len, workflow.phases.transitions.values()))
    heads = [name for line in lines for name in ("marker-start", "marker-end") if line.get(name)]
    assert len(heads) == needs + transitions


@pytest.mark.parametrize("count", [*range(1, 15), 30])
def test_the_boxes_of_a_picture_lie_within_it_and_apart(count: int) -> None:
    enum: Any = StrEnum
    names = list(enum("Names", {f"P{number}": f"Phase{number}" for number in range(count)}))
    phases: Phases[Any] = Phases(names[0], {name: set(names) for name in names}, workflow.phases.derive)
    root = ElementTree.fromstring(render_svg(replace(workflow, phases=phases)))
    placed = [[int(one.get(name) or 0) for name in ("x", "y", "width", "height")] for one in root.iter(f"{SPACE}rect")]
    for number, (left, top, width, height) in enumerate(placed):
        assert 0 <= left <= int(root.get("width") or 0) - width
        assert 0 <= top <= int(root.get("height") or 0) - height
        for other in placed[:number]:
            assert abs(left - other[0]) >= width or abs(top - other[1]) >= height


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
