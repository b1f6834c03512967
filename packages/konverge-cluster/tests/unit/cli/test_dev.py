"""`konverge dev`: how it detects changes, what it shows, and the whole command as a process."""

from __future__ import annotations

import io
import os
import signal
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

from konverge.cli import main
from konverge.objects import Unstructured
from konverge_cluster.cli.dev_sources import changed_files, folder_of, snapshot
from konverge_cluster.cli.dev_status import DevStatus, ObjectRow, QueueRow, queues_in, state_of
from konverge_cluster.cli.live_table import LineView, changes, tables
from programs import Program, program

OPERATOR = '''
from pathlib import Path

from konverge import Context, CustomResource, Spec, Status, controller_for
from konverge.manager import Operator
from konverge.webhooks import Deny, validating

class ThingSpec(Spec):
    size: int = 1

class ThingStatus(Status):
    phase: str = ""

class Thing(CustomResource[ThingSpec, ThingStatus], group="dev.konverge.dev", version="v1"):
    """A thing."""

@validating(Thing)
def check(thing, old, request):
    return Deny("too large") if thing.spec.size > 9 else None

async def reconcile(thing: Thing, ctx: Context) -> None:
    thing.status.phase = "First"
    await ctx.update_status(thing)

operator = Operator(
    name="thing-operator",
    kinds=(Thing,),
    controllers=(controller_for(Thing).build(reconcile),),
    webhooks=(check,),
    samples=(Path(__file__).parent / "samples.yaml",),
)
'''
SAMPLES = """
apiVersion: dev.konverge.dev/v1
kind: Thing
metadata: {name: small}
---
apiVersion: dev.konverge.dev/v1
kind: Thing
metadata: {name: large}
spec: {size: 10}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The source of an operator, in a folder with its samples."""
    file = tmp_path / "things" / "operator.py"
    file.parent.mkdir()
    file.write_text(textwrap.dedent(OPERATOR))
    (tmp_path / "things" / "samples.yaml").write_text(SAMPLES)
    return file


@pytest.fixture
def dev(source: Path, tmp_path: Path) -> Iterator[Program]:
    with program("dev", "things", folder=tmp_path, temporary=tmp_path / "scratch") as started:
        yield started


def test_an_operator_runs_is_reloaded_and_leaves_nothing_behind(dev: Program, source: Path) -> None:
    output = dev.read_until("Thing default/small: First")
    assert "too large" in output, "samples go through the webhooks"

    source.write_text(source.read_text().replace('"First"', '"Second"'))
    output = dev.read_until("Thing default/small: Second")
    assert "changed: operator.py; restarting the operator" in output

    source.write_text("not valid Python")
    dev.read_until("the operator exited with code 1; it is restarted when its source changes")
    output = dev.end(signal.SIGINT)

    assert dev.process.returncode == 0
    assert output.endswith("stopped, nothing is left behind\n")
    assert dev.left_behind() == []
    assert not (dev.folder / "konverge.kubeconfig").exists()


def test_an_operator_without_a_rule_exits_with_the_rule_to_add(source: Path, tmp_path: Path) -> None:
    status = '    thing.status.phase = "First"'
    text = source.read_text().replace(status, f'    await ctx.client.list("secrets")\n{status}')
    source.write_text(text)
    with program("dev", "things", folder=tmp_path, temporary=tmp_path / "scratch") as dev:
        output = dev.read_until("the operator exited with code 1; it is restarted when its source changes")
        rule = '{apiGroups: [""], resources: ["secrets"], verbs: ["list"]}'
        assert (
            "thing-operator may not list secrets at the cluster scope: declare .needs(<kind of secrets>, 'list')"
            in output
        )
        assert rule in output

        source.write_text(
            text.replace(".build(reconcile)", '.needs(Secret, "list").build(reconcile)').replace(
                "from pathlib import Path", "from pathlib import Path\nfrom konverge.k8s.core.v1 import Secret"
            )
        )
        dev.read_until("Thing default/small: First")
        dev.end(signal.SIGINT)


def test_a_file_named_like_a_standard_library_module_runs_and_exits_when_dev_is_killed(
    source: Path, tmp_path: Path
) -> None:
    with program("dev", "operator.py", folder=source.parent, temporary=tmp_path / "scratch") as dev:
        dev.read_until("Thing default/small: First")
        assert len(dev.processes) == 2

        dev.process.kill()
        dev.process.wait()

        dev.wait_until_all_exited()


def test_a_kubeconfig_of_another_cluster_is_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "config"
    mine.write_text("clusters: [{name: production}]")
    (tmp_path / "operator.py").write_text("")
    monkeypatch.setenv("KONVERGE_KUBECONFIG", str(mine))

    result = CliRunner().invoke(main, ["dev", str(tmp_path)])

    assert result.exit_code == 1
    assert "already exists and does not belong to a konverge cluster" in result.output
    assert mine.read_text() == "clusters: [{name: production}]"


def test_added_removed_and_modified_source_files_are_detected_and_no_others(tmp_path: Path) -> None:
    unchanged, edited, removed = (tmp_path / name for name in ("unchanged.py", "edited.py", "removed.yaml"))
    for path in (unchanged, edited, removed):
        path.write_text("")
    before = snapshot(tmp_path)

    os.utime(edited, ns=(1, 1))
    removed.unlink()
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "cached.py").write_text("")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "new.py").write_text("")

    assert changed_files(before, snapshot(tmp_path)) == [edited, tmp_path / "inner" / "new.py", removed]
    assert changed_files(before, before) == []


def test_the_source_folder_of_a_target_is_that_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "operator.py").write_text("")
    assert folder_of(str(tmp_path)) == tmp_path
    assert folder_of(f"{tmp_path}/operator.py:other") == tmp_path
    assert folder_of("konverge.cli").name == "cli"
    with pytest.raises(click.UsageError, match="there is no file, package or module 'no_such_thing'"):
        folder_of("no_such_thing")


@pytest.mark.parametrize(
    ("obj", "state"),
    [
        ({"spec": {"replicas": 3}, "status": {"phase": "Ready", "availableReplicas": 2}}, "Ready 2/3"),
        ({"status": {"conditions": [{"type": "Available", "status": "False"}]}}, "not Available"),
        ({"status": {"conditions": [{"type": "Complete", "status": "True"}]}}, "Complete"),
        (
            {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Bound"}},
            "Terminating Bound",
        ),
        ({}, "-"),
    ],
)
def test_the_state_of_an_object_is_short(obj: dict[str, object], state: str) -> None:
    assert state_of(Unstructured({"metadata": {}, **obj})) == state


def test_queues_are_read_from_metrics() -> None:
    text = (
        "# TYPE workqueue_depth gauge\n"
        'workqueue_depth{controller="webapp",name="webapp"} 2.0\n'
        "# TYPE reconcile_total counter\n"
        'reconcile_total{controller="webapp",result="success"} 5.0\n'
        'reconcile_total{controller="webapp",result="error"} 1.0\n'
        "# TYPE reconcile_errors_total counter\n"
        'reconcile_errors_total{controller="webapp"} 1.0\n'
    )
    assert queues_in(text) == (QueueRow("webapp", ready=2, reconciles=6, errors=1),)
    assert queues_in("") == ()


def test_lines_show_each_change_once(capsys: pytest.CaptureFixture[str]) -> None:
    before = DevStatus((ObjectRow("WebApp", "shop/a", "Ready"), ObjectRow("WebApp", "shop/b", "Ready")))
    after = DevStatus((ObjectRow("WebApp", "shop/a", "Scaling"),), (QueueRow("webapp", 0, 1, 7, 2),))
    view = LineView()
    view.show(after)
    view.show(after)

    assert changes(before, after)[:2] == ["WebApp shop/a: Scaling", "WebApp shop/b: deleted"]
    counts = "controller webapp: 7 reconciles, 2 failed, 0 ready, 1 delayed"
    assert capsys.readouterr().out.splitlines() == ["WebApp shop/a: Scaling", counts]


def test_tables_show_objects_queues_and_the_log() -> None:
    objects = tuple(ObjectRow("WebApp", f"shop/{number:02}", "Ready 3/3") for number in range(25))
    out = io.StringIO()
    Console(file=out, width=100).print(
        tables(DevStatus(objects, (QueueRow("webapp", 1, 2, 42, 4),), ("a line of [log]",)))
    )

    output = out.getvalue()
    for text in ("shop/00", "Ready 3/3", "and 5 more", "webapp", "42", "a line of [log]"):
        assert text in output
    assert "shop/24" not in output
