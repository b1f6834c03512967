"""Behaviors of containers: selectors, precedence, parsing."""

from __future__ import annotations

from typing import Any

import pytest

from konverge_cluster.nodes import ANNOTATION, Behavior, Program
from konverge_cluster.nodes.behaviors import PodInfo


def pod(**more: Any) -> PodInfo:
    return PodInfo(**{"name": "web-1", "namespace": "shop", "labels": {"app": "web"}, "annotations": {}, **more})


@pytest.mark.parametrize(
    ("behavior", "fits"),
    [
        (Behavior(), True),
        (Behavior(image="bad:*"), True),
        (Behavior(image="good:*"), False),
        (Behavior(name="web-*", namespace="shop", container="c"), True),
        (Behavior(name="web"), False),
        (Behavior(namespace="other"), False),
        (Behavior(labels="app in (web, api)"), True),
        (Behavior(labels="app=api"), False),
    ],
)
def test_a_behavior_applies_to_containers_that_all_its_selectors_match(behavior: Behavior, fits: bool) -> None:
    assert behavior.matches("bad:1", "c", pod()) == fits


def test_later_behaviors_win_and_an_annotation_wins_over_all() -> None:
    program = Program([Behavior(ready_after=5, crashes=1), Behavior(image="bad:*", ready_after=9)])
    annotated = pod(annotations={f"{ANNOTATION}ready-after": "2", "other/ready-after": "x"})

    assert program.behavior_of("bad:1", "c", pod()).ready_after == 9
    assert program.behavior_of("good:1", "c", pod()).ready_after == 5
    found = program.behavior_of("bad:1", "c", annotated)
    assert (found.ready_after, found.crashes) == (2, 1)


def test_a_command_line_and_a_file_have_the_same_result() -> None:
    wanted = Behavior(image="bad:*", labels="app=web", never_ready=True, ready_after=1.5, exit_code=3)
    file = {"image": "bad:*", "labels": "app=web", "neverReady": True, "readyAfter": 1.5, "exit-code": 3}

    assert Behavior.parse("image=bad:*, labels=app=web, never-ready, ready-after=1.5, exit_code=3") == wanted
    assert Behavior.from_dict(file) == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("imagee=x", "'imagee' is no field of a behavior: write one of container, crashes"),
        ("never-ready=maybe", "never-ready takes true or false, got 'maybe'"),
        ("crashes=often", "crashes takes a number, got 'often'"),
        ("ready-after=-1", "ready_after is a number of seconds, 0 or more, got -1.0"),
        ("runs-for=nan", "runs_for is a number of seconds, 0 or more, got nan"),
        ("start-after=inf", "start_after is a number of seconds, 0 or more, got inf"),
        ("crashes=-2", "crashes is a number of runs, 0 or more, or -1 for all of them, got -2"),
        ("exit-code=-1", "exit_code is a number from 0 to 255, got -1"),
        ("exit-code=256", "exit_code is a number from 0 to 255, got 256"),
        ("image=,never-ready", "image= has no value"),
        ("", "'' does not say what containers do: write one or more of start-after, ready-after, never-ready"),
        ("image=bad:*", "does not say what containers do"),
    ],
)
def test_an_error_says_what_to_write(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Behavior.parse(text)
