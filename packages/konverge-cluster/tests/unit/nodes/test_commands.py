"""Simple commands of containers are followed, others are not; images may say that they cannot be pulled."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge_cluster.nodes import Behavior
from konverge_cluster.nodes.commands import CommandResult, default_behavior, is_missing_image, run_command
from running_clusters import pod, running_cluster

ENVIRONMENT = {"JOB_COMPLETION_INDEX": "2", "NAME": "web"}


@pytest.mark.parametrize(
    ("words", "seconds", "code"),
    [
        (["sleep", "30"], 30, 0),
        (["/bin/sleep", "1.5m"], 90, 0),
        (["sleep", "1", "2"], 3, 0),
        (["sleep", "infinity"], math.inf, 0),
        (["sleep", "$(JOB_COMPLETION_INDEX)"], 2, 0),
        (["true"], 0, 0),
        (["/bin/false"], 0, 1),
        (["sh", "-c", "exit 3"], 0, 3),
        (["/bin/sh", "-c", "exit"], 0, 0),
        (["sh", "-c", "exit 256"], 0, 0),
        (["bash", "-c", "sleep 2; exit 1; sleep 100"], 2, 1),
        (["sh", "-c", "sleep 2\nsleep 3\n"], 5, 0),
        (["sh", "-c", "echo 'a; b' && sleep 1 && false || exit 7"], 1, 7),
        (["sh", "-c", "true || exit 7"], 0, 0),
        (["sh", "-c", "exit $JOB_COMPLETION_INDEX"], 0, 2),
        (["sh", "-c", "sleep ${JOB_COMPLETION_INDEX}; exit 1"], 2, 1),
        (["sh", "-c", '[ "$JOB_COMPLETION_INDEX" = 2 ] && exit 1; sleep 5'], 0, 1),
        (["sh", "-c", "[ $JOB_COMPLETION_INDEX -lt 2 ] && exit 1; sleep 5"], 5, 0),
        (["sh", "-c", "test $NAME = web && exit 4"], 0, 4),
        (["sh", "-c", "sleep infinity; exit 1"], math.inf, 0),
    ],
)
def test_a_simple_command_is_followed(words: list[str], seconds: float, code: int) -> None:
    found = run_command(words, ENVIRONMENT)

    assert isinstance(found, CommandResult)
    assert (found.seconds, found.exit_code) == (seconds, code)


@pytest.mark.parametrize(
    "words",
    [
        ["nginx"],
        ["sleep"],
        ["sleep", "soon"],
        ["exit", "1"],
        ["sh"],
        ["sh", "script.sh"],
        ["sh", "-c", "exit one"],
        ["sh", "-c", "sleep 1 &"],
        ["sh", "-c", "sleep 1 | cat"],
        ["sh", "-c", "while true; do sleep 1; done"],
        ["sh", "-c", "sleep $UNKNOWN"],
        ["sh", "-c", "exit $(cat /tmp/x)"],
        ["sh", "-c", "exit `cat x`"],
        ["sh", "-c", "echo 'unbalanced"],
        ["sh", "-c", "[ -f x ] && exit 1"],
        ["sh", "-c", "[ x -eq 1 ] && exit 1"],
        ["sleep", "$JOB_COMPLETION_INDEX"],
    ],
)
def test_any_other_command_is_not_followed(words: list[str]) -> None:
    assert run_command(words, ENVIRONMENT) is None


@given(st.lists(st.text(max_size=30), min_size=1, max_size=4))
def test_no_command_fails(words: list[str]) -> None:
    for each in (words, ["sh", "-c", *words]):
        found = run_command(each, ENVIRONMENT)
        assert found is None or (found.seconds >= 0 and 0 <= found.exit_code <= 255)


@pytest.mark.parametrize(
    ("image", "missing"),
    [
        ("web:does-not-exist", True),
        ("example.test:5000/team/web:nonexistent", True),
        ("web:invalid@sha256:0", True),
        ("invalid.example.test/web:1", True),
        ("invalid", False),
        ("web:1", False),
        ("does-not-exist:1", False),
    ],
)
def test_a_tag_or_a_registry_says_that_an_image_is_missing(image: str, missing: bool) -> None:
    assert is_missing_image(image) == missing


def test_what_is_programmed_wins() -> None:
    container: dict[str, Any] = {"image": "web:invalid", "command": ["sleep", "5"]}
    metadata: dict[str, Any] = {"metadata": {}}

    assert default_behavior(Behavior(), container, metadata) == Behavior(pull_fails=True, runs_for=5, exit_code=0)
    endless = default_behavior(Behavior(), {"image": "web:1", "command": ["sleep", "infinity"]}, metadata)
    assert endless.runs_for is not None
    assert endless.runs_for > 1e8
    programmed = Behavior(pull_fails=False, crashes=1)
    assert default_behavior(programmed, container, metadata) == programmed


async def test_a_pod_follows_its_command() -> None:
    async with running_cluster() as cluster:
        index = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
        container = {
            "name": "c",
            "image": "app:1",
            "command": ["sh", "-c", "sleep 60; exit $JOB_COMPLETION_INDEX"],
            "env": [{"name": "JOB_COMPLETION_INDEX", "valueFrom": index}],
        }
        annotations = {"batch.kubernetes.io/job-completion-index": "4"}
        made = pod("once", annotations=annotations, containers=[container], restartPolicy="Never")
        await cluster.client.create(made)
        await asyncio.sleep(70)

        state = (await cluster.pod("once"))["status"]["containerStatuses"][0]["state"]["terminated"]
        assert state["exitCode"] == 4


async def test_a_pod_whose_image_is_missing_waits() -> None:
    async with running_cluster() as cluster:
        await cluster.client.create(pod("bad", image="app:does-not-exist"))
        await asyncio.sleep(10)

        state = (await cluster.pod("bad"))["status"]["containerStatuses"][0]["state"]["waiting"]
        assert state["reason"] == "ImagePullBackOff"
