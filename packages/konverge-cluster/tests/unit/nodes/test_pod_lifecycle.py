"""The lifecycle of a pod as a pure state machine, on plain values."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from konverge_cluster.nodes import Behavior
from pod_lifecycles import PodScenario


def two(policy: str, **more: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "app:1"}, {"name": "d", "image": "other:1"}]
    return {"containers": containers, "restartPolicy": policy, **more}


def test_a_pod_is_created_and_then_runs() -> None:
    pod = PodScenario().at(0)

    assert [state["phase"] for state in pod.states] == ["Pending", "Running"]
    first = pod.states[0]
    assert first["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
    conditions = {one["type"]: (one["status"], one.get("reason")) for one in first["conditions"]}
    assert conditions == {
        "PodReadyToStartContainers": ("False", None),
        "Initialized": ("True", None),
        "Ready": ("False", "ContainersNotReady"),
        "ContainersReady": ("False", "ContainersNotReady"),
        "PodScheduled": ("True", None),
    }
    assert set(pod.conditions.values()) == {"True"}
    assert "podIP" not in first
    assert pod.pod["status"]["podIP"] == "10.64.0.2"


def test_a_running_pod_does_not_change() -> None:
    pod = PodScenario().at(0)
    before = len(pod.states)
    pod.at(100_000)

    assert len(pod.states) == before


def test_a_container_takes_its_time_to_start_and_to_become_ready() -> None:
    pod = PodScenario(Behavior(start_after=10, ready_after=5))

    assert pod.at(9).phase == "Pending"
    assert (pod.at(10).phase, pod.conditions["Ready"]) == ("Running", "False")
    assert pod.reason("Ready") == ("ContainersNotReady", "containers with unready status: [c]")
    assert pod.at(14).conditions["Ready"] == "False"
    assert pod.at(15).conditions["Ready"] == "True"


def test_a_readiness_probe_waits_first() -> None:
    probe = {"httpGet": {"port": 80}, "initialDelaySeconds": 7}
    pod = PodScenario(containers=[{"name": "c", "image": "app:1", "readinessProbe": probe}])

    assert pod.at(6).conditions["Ready"] == "False"
    assert pod.at(7).conditions["Ready"] == "True"


def test_a_container_that_is_never_ready_runs_and_reports_it_once() -> None:
    pod = PodScenario(Behavior(never_ready=True)).at(1000)

    assert (pod.phase, pod.conditions["ContainersReady"]) == ("Running", "False")
    assert [one for one in pod.events if one.startswith("Unhealthy")] == [
        "Unhealthy: Readiness probe failed: simulated failure"
    ]


def test_a_crashing_container_restarts_at_once_and_then_backs_off() -> None:
    pod = PodScenario(Behavior(crashes=-1, exit_code=3))

    assert pod.at(1).container()["restartCount"] == 1  # it ran for a second and was started again
    assert (pod.at(2).state(), pod.container()["restartCount"]) == ("waiting CrashLoopBackOff", 1)
    message = pod.container()["state"]["waiting"]["message"]
    assert message == "back-off 10s restarting failed container=c pod=p_default(u)"
    assert pod.container()["lastState"]["terminated"]["exitCode"] == 3
    assert (pod.phase, pod.conditions["Ready"]) == ("Running", "False")
    assert pod.at(11).state() == "waiting CrashLoopBackOff"
    assert (pod.at(12).state(), pod.container()["restartCount"]) == ("running", 2)
    assert pod.at(13).container()["state"]["waiting"]["message"].startswith("back-off 20s")
    assert pod.at(34).container()["state"]["waiting"]["message"].startswith("back-off 40s")
    assert (
        pod.at(100_000)
        .container()["state"]
        .get("waiting", {"message": "back-off 5m0s"})["message"]
        .startswith("back-off 5m0s")
    )


def test_a_container_that_crashes_twice_then_runs() -> None:
    pod = PodScenario(Behavior(crashes=2)).at(60)

    assert (pod.state(), pod.container()["restartCount"]) == ("running", 2)
    assert pod.conditions["Ready"] == "True"


def test_an_image_pull_that_fails_backs_off() -> None:
    pod = PodScenario(Behavior(image="app:*", pull_fails=True))

    assert (pod.at(0).phase, pod.state()) == ("Pending", "waiting ErrImagePull")
    assert pod.at(5).state() == "waiting ImagePullBackOff"
    message = pod.container()["state"]["waiting"]["message"]
    assert message.startswith('Back-off pulling image "app:1": ErrImagePull: ')
    assert "Failed: Error: ErrImagePull" in pod.events
    assert pod.conditions["PodReadyToStartContainers"] == "True"


def test_a_pod_whose_containers_exit_with_zero_succeeds() -> None:
    pod = PodScenario(**two("Never"))

    assert pod.at(0).phase == "Running"
    assert (pod.at(1).phase, pod.state(), pod.state("d")) == (
        "Succeeded",
        "terminated Completed",
        "terminated Completed",
    )
    assert pod.reason("Ready") == ("PodCompleted", "")
    assert pod.reason("Initialized") == ("PodCompleted", "")


def test_without_restarts_a_pod_fails_if_one_container_failed_and_all_terminated() -> None:
    pod = PodScenario(Behavior(container="c", exit_code=2), Behavior(container="d", runs_for=9), **two("Never"))

    assert (pod.at(1).phase, pod.state()) == ("Running", "terminated Error")
    assert pod.at(9).phase == "Failed"
    assert pod.reason("ContainersReady") == ("PodFailed", "")


def test_on_failure_a_container_restarts_until_it_exits_with_zero() -> None:
    pod = PodScenario(Behavior(crashes=1), restartPolicy="OnFailure").at(10)

    assert (pod.phase, pod.container()["restartCount"]) == ("Succeeded", 1)


def test_a_container_that_exits_with_zero_restarts_if_the_policy_is_always() -> None:
    pod = PodScenario(Behavior(runs_for=3)).at(3)

    assert (pod.phase, pod.container()["restartCount"]) == ("Running", 1)
    assert pod.container()["lastState"]["terminated"]["exitCode"] == 0


def test_init_containers_run_one_after_the_other() -> None:
    init = [{"name": "a", "image": "a"}, {"name": "b", "image": "b"}]
    pod = PodScenario(Behavior(container="[ab]", runs_for=5), initContainers=init)

    assert (pod.at(0).state("a"), pod.state("b"), pod.state()) == (
        "running",
        "waiting PodInitializing",
        "waiting PodInitializing",
    )
    assert pod.reason("Initialized") == ("ContainersNotInitialized", "containers with incomplete status: [a b]")
    assert (pod.at(5).state("a"), pod.state("b")) == ("terminated Completed", "running")
    assert pod.container("a")["ready"] is True
    assert (pod.at(10).phase, pod.conditions["Initialized"]) == ("Running", "True")


def test_a_failed_init_container_fails_the_pod_or_restarts() -> None:
    init = [{"name": "a", "image": "a"}]
    once = PodScenario(Behavior(container="a", crashes=1), initContainers=init, restartPolicy="Never").at(60)
    again = PodScenario(Behavior(container="a", crashes=1), initContainers=init).at(60)

    assert (once.phase, once.state()) == ("Failed", "waiting PodInitializing")
    assert (again.phase, again.container("a")["restartCount"]) == ("Running", 1)


def test_a_sidecar_keeps_running_and_stops_after_the_others() -> None:
    init = [{"name": "s", "image": "s", "restartPolicy": "Always"}, {"name": "a", "image": "a"}]
    pod = PodScenario(Behavior(container="c", runs_for=20), initContainers=init, restartPolicy="Never")

    assert (pod.at(10).state("s"), pod.state("a"), pod.state()) == ("running", "terminated Completed", "running")
    assert pod.conditions["Ready"] == "True"
    assert (pod.at(20).phase, pod.state("s")) == ("Succeeded", "terminated Completed")


def test_a_pod_past_its_deadline_fails() -> None:
    pod = PodScenario(activeDeadlineSeconds=30)

    assert pod.at(29).phase == "Running"
    assert pod.at(30).phase == "Failed"
    assert pod.pod["status"]["reason"] == "DeadlineExceeded"
    assert pod.container()["state"]["terminated"]["exitCode"] == 137


def test_a_deleted_pod_takes_as_long_as_programmed_within_its_grace_period() -> None:
    slow, stubborn = PodScenario(Behavior(stops_after=10)).at(5), PodScenario(Behavior(stops_after=100)).at(5)
    slow.delete(30)
    stubborn.delete(30)

    assert (slow.at(14).terminated, slow.at(15).terminated) == (False, True)
    assert slow.container()["state"]["terminated"]["exitCode"] == 143
    assert (stubborn.at(34).terminated, stubborn.at(35).terminated) == (False, True)
    assert stubborn.container()["state"]["terminated"]["exitCode"] == 137
    assert slow.events.count("Killing: Stopping container c") == 1


def with_hook(hook: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return [{"name": "c", "image": "app:1", "lifecycle": {"preStop": hook}, **more}]


def test_a_pre_stop_hook_runs_before_sigterm() -> None:
    for hook in ({"sleep": {"seconds": 8}}, {"exec": {"command": ["sh", "-c", "sleep 8"]}}):
        pod = PodScenario(Behavior(stops_after=2), containers=with_hook(hook)).at(5)
        pod.delete(30)

        assert (pod.at(14).terminated, pod.at(15).terminated) == (False, True)
        assert pod.container()["state"]["terminated"]["exitCode"] == 143
        assert not [one for one in pod.events if one.startswith("FailedPreStopHook")]


def test_a_pre_stop_hook_that_takes_too_long_leaves_two_seconds() -> None:
    hook = {"sleep": {"seconds": 100}}
    quick, slow = (PodScenario(Behavior(stops_after=stop), containers=with_hook(hook)).at(5) for stop in (1, 9))
    quick.delete(10)
    slow.delete(10)

    assert (quick.at(15).terminated, quick.at(16).terminated) == (False, True)
    assert quick.container()["state"]["terminated"]["exitCode"] == 143
    assert (slow.at(16).terminated, slow.at(17).terminated) == (False, True)
    assert slow.container()["state"]["terminated"]["exitCode"] == 137


def test_a_pre_stop_hook_that_fails_is_reported_once() -> None:
    pod = PodScenario(Behavior(stops_after=3), containers=with_hook({"exec": {"command": ["false"]}})).at(5)
    pod.delete(30)

    assert pod.at(20).terminated
    assert pod.events.count("FailedPreStopHook: PreStopHook failed") == 1


def test_a_hook_that_cannot_be_followed_takes_no_time() -> None:
    pod = PodScenario(containers=with_hook({"httpGet": {"path": "/stop", "port": 80}})).at(5)
    pod.delete(30)

    assert pod.at(5).terminated


def test_sidecars_stop_after_the_main_containers_the_last_one_first() -> None:
    sidecars = [{"name": name, "image": "side:1", "restartPolicy": "Always"} for name in ("first", "second")]
    behaviors = (Behavior(image="app:*", stops_after=10), Behavior(image="side:*", stops_after=5))
    pod = PodScenario(*behaviors, initContainers=sidecars).at(5)
    pod.delete(30)

    running = []
    for second in (14, 15, 19, 20, 24):
        pod.at(second)
        running.append([name for name in ("c", "second", "first") if pod.container(name)["state"].get("running")])
    assert running == [["c", "second", "first"], *[["second", "first"]] * 2, *[["first"]] * 2]
    assert pod.at(25).terminated


def test_a_container_that_exits_while_it_stops_keeps_its_exit_code() -> None:
    pod = PodScenario(Behavior(runs_for=12, exit_code=0, stops_after=20), restartPolicy="Never").at(5)
    pod.delete(30)

    assert (pod.at(11).terminated, pod.at(12).terminated, pod.phase) == (False, True, "Succeeded")


def test_a_pod_that_never_started_is_removed_at_once() -> None:
    pod = PodScenario(Behavior(pull_fails=True)).at(60)
    pod.delete()

    assert pod.at(60).terminated
    assert (pod.phase, pod.state()) == ("Failed", "terminated ContainerStatusUnknown")


def test_a_finished_pod_is_removed_unchanged() -> None:
    pod = PodScenario(restartPolicy="Never").at(60)
    pod.delete()

    assert pod.at(60).terminated
    assert pod.phase == "Succeeded"


def test_a_readiness_gate_counts_beside_the_containers() -> None:
    pod = PodScenario(readinessGates=[{"conditionType": "x"}]).at(0)
    assert pod.reason("Ready") == (
        "ReadinessGatesNotReady",
        'corresponding condition of pod readiness gate "x" does not exist.',
    )
    pod.pod["status"]["conditions"].append({"type": "x", "status": "False"})
    pod.at(0)
    assert pod.reason("Ready")[1] == 'the status of pod readiness gate "x" is not "True", but False'
    pod.pod["status"]["conditions"][-1]["status"] = "True"
    assert pod.at(0).conditions["Ready"] == "True"


BEHAVIOURS = st.builds(
    Behavior,
    container=st.sampled_from(["", "c", "d", "a", "s"]),
    start_after=st.none() | st.integers(0, 20),
    ready_after=st.none() | st.integers(0, 20),
    never_ready=st.none() | st.booleans(),
    runs_for=st.none() | st.integers(0, 20),
    exit_code=st.none() | st.integers(0, 3),
    crashes=st.none() | st.integers(-1, 3),
    pull_fails=st.none() | st.booleans(),
    stops_after=st.none() | st.integers(0, 60),
)


@given(
    st.lists(BEHAVIOURS, max_size=3),
    st.sampled_from(["Always", "OnFailure", "Never"]),
    st.sampled_from(["", "a", "s", "sa"]),
    st.none() | st.integers(0, 200),
)
def test_every_behavior_leads_to_a_valid_lifecycle(
    behaviors: list[Behavior], policy: str, init: str, deleted: int | None
) -> None:
    lasting = {"restartPolicy": "Always"}
    first = [{"name": name, "image": name, **(lasting if name == "s" else {})} for name in init]
    pod = PodScenario(*behaviors, **two(policy, initContainers=first))

    for second in range(0, 400, 10):
        if deleted is not None and second >= deleted and "deletionTimestamp" not in pod.pod["metadata"]:
            pod.delete()
        pod.at(second)
        if pod.terminated:
            break

    # Steps without time passing are bounded, a deleted pod terminates, and a terminal phase never changes back.
    assert pod.steps < 2000
    assert pod.terminated == (deleted is not None)
    phases = [state["phase"] for state in pod.states]
    order = {"Pending": 0, "Running": 1, "Succeeded": 2, "Failed": 2}
    ranks = [order[phase] for phase in phases]
    assert ranks == sorted(ranks)
    assert all(one["state"] for state in pod.states for one in state["containerStatuses"])


@given(
    st.lists(BEHAVIOURS, max_size=3),
    st.sampled_from(["Always", "OnFailure", "Never"]),
    st.sampled_from(["", "a", "s", "sa"]),
    st.integers(1, 7),
)
def test_more_frequent_syncs_change_nothing(behaviors: list[Behavior], policy: str, init: str, every: int) -> None:
    lasting = {"restartPolicy": "Always"}
    first = [{"name": name, "image": name, **(lasting if name == "s" else {})} for name in init]
    lazy, eager = (PodScenario(*behaviors, **two(policy, initContainers=first)) for _ in range(2))

    lazy.at(210)
    for second in range(0, 210, every):
        eager.at(second)
    eager.at(210)

    assert eager.pod == lazy.pod
    assert eager.events == lazy.events
