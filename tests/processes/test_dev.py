"""`konverge dev --run` runs the local images that an operator ships."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from programs import program

pytestmark = pytest.mark.processes

OPERATOR = '''
from pathlib import Path

from konverge import Context, CustomResource, ObjectMeta, Operator, Spec, Status, controller_for
from konverge.k8s.core.v1 import Container, Pod, PodSpec


class TaskStatus(Status):
    phase: str = ""


class Task(CustomResource[Spec, TaskStatus], group="dev.konverge.dev", version="v1"):
    """A program that runs once."""


@controller_for(Task).owns(Pod)
async def tasks(task: Task, ctx: Context) -> None:
    spec = PodSpec(restart_policy="Never", containers=[Container(name="main", image="task:1", args=["$(WORD)"])])
    pod = await ctx.apply(Pod(metadata=ObjectMeta(name=task.name), spec=spec))
    for one in pod.status.container_statuses or () if pod.status is not None else ():
        ended = one.state.terminated if one.state is not None else None
        task.status.phase = ended.message if ended is not None and ended.message else "Waiting"
    await ctx.update_status(task)


def local_images():
    from konverge_cluster.processes import LocalImage

    script = "echo $WORD from a process > /dev/termination-log"
    return [LocalImage("task:*", command=["/bin/sh", "-c", script], env={"WORD": "hello"}, arguments="ignore")]


operator = Operator(
    name="task-operator",
    controllers=(tasks,),
    samples=(Path(__file__).parent / "sample.yaml",),
    images=(local_images,),
)
'''


def test_dev_runs_the_local_images_that_an_operator_ships(tmp_path: Path) -> None:
    folder = tmp_path / "tasks"
    folder.mkdir()
    (folder / "operator.py").write_text(OPERATOR)
    (folder / "sample.yaml").write_text("{apiVersion: dev.konverge.dev/v1, kind: Task, metadata: {name: one}}")

    with program("dev", "tasks", "--run", folder=tmp_path, temporary=tmp_path / "scratch") as dev:
        output = dev.read_until("Task default/one: hello from a process")
        assert "1 local images" in output
        dev.end(signal.SIGINT)

    assert dev.process.returncode == 0
    assert dev.left_behind() == []
