"""The life of a pod as a pure machine, on plain values."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from konverge_cluster.nodes import Behavior
from pod_lifecycles import PodLife


def two(policy: str, **more: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "app:1"}, {"name": "d", "image": "other:1"}]
    return {"containers": containers, "restartPolicy": policy, **more}


def test_a_pod_is_created_and_then_runs() -> None:
    life = PodLife().at(0)

    assert [state["phase"] for state in life.states] == ["Pending", "Running"]
    first = life.states[0]
    assert first["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
    told = {one["type"]: (one["status"], one.get("reason")) for one in first["conditions"]}
    assert told == {
        "PodReadyToStartContainers": ("False", None),
        "Initialized": ("True", None),
        "Ready": ("False", "ContainersNotReady"),
        "ContainersReady": ("False", "ContainersNotReady"),
        "PodScheduled": ("True", None),
    }
    assert set(life.conditions.values()) == {"True"}
    assert "podIP" not in first
    assert life.pod["status"]["podIP"] == "10.64.0.2"


def test_a_pod_that_runs_changes_no_more() -> None:
    life = PodLife().at(0)
    before = len(life.states)
    life.at(100_000)

    assert len(life.states) == before


def test_a_container_takes_its_time_to_start_and_to_become_ready() -> None:
    life = PodLife(Behavior(start_after=10, ready_after=5))

    assert life.at(9).phase == "Pending"
    assert (life.at(10).phase, life.conditions["Ready"]) == ("Running", "False")
    assert life.reason("Ready") == ("ContainersNotReady", "containers with unready status: [c]")
    assert life.at(14).conditions["Ready"] == "False"
    assert life.at(15).conditions["Ready"] == "True"


def test_a_readiness_probe_waits_first() -> None:
    probe = {"httpGet": {"port": 80}, "initialDelaySeconds": 7}
    life = PodLife(containers=[{"name": "c", "image": "app:1", "readinessProbe": probe}])

    assert life.at(6).conditions["Ready"] == "False"
    assert life.at(7).conditions["Ready"] == "True"


def test_a_container_that_is_never_ready_runs_and_says_so_once() -> None:
    life = PodLife(Behavior(never_ready=True)).at(1000)

    assert (life.phase, life.conditions["ContainersReady"]) == ("Running", "False")
    assert [one for one in life.told if one.startswith("Unhealthy")] == ["Unhealthy: Readiness probe failed: told to"]


def test_a_container_that_crashes_starts_again_at_once_and_then_backs_off() -> None:
    life = PodLife(Behavior(crashes=-1, exit_code=3))

    assert life.at(1).container()["restartCount"] == 1  # it ran for a second and was started again
    assert (life.at(2).state(), life.container()["restartCount"]) == ("waiting CrashLoopBackOff", 1)
    message = life.container()["state"]["waiting"]["message"]
    assert message == "back-off 10s restarting failed container=c pod=p_default(u)"
    assert life.container()["lastState"]["terminated"]["exitCode"] == 3
    assert (life.phase, life.conditions["Ready"]) == ("Running", "False")
    assert life.at(11).state() == "waiting CrashLoopBackOff"
    assert (life.at(12).state(), life.container()["restartCount"]) == ("running", 2)
    assert life.at(13).container()["state"]["waiting"]["message"].startswith("back-off 20s")
    assert life.at(34).container()["state"]["waiting"]["message"].startswith("back-off 40s")
    assert (
        life.at(100_000)
        .container()["state"]
        .get("waiting", {"message": "back-off 5m0s"})["message"]
        .startswith("back-off 5m0s")
    )


def test_a_container_that_crashes_twice_runs_then() -> None:
    life = PodLife(Behavior(crashes=2)).at(60)

    assert (life.state(), life.container()["restartCount"]) == ("running", 2)
    assert life.conditions["Ready"] == "True"


def test_an_image_that_cannot_be_pulled_is_tried_and_backed_off_from() -> None:
    life = PodLife(Behavior(image="app:*", pull_fails=True))

    assert (life.at(0).phase, life.state()) == ("Pending", "waiting ErrImagePull")
    assert life.at(5).state() == "waiting ImagePullBackOff"
    message = life.container()["state"]["waiting"]["message"]
    assert message.startswith('Back-off pulling image "app:1": ErrImagePull: ')
    assert "Failed: Error: ErrImagePull" in life.told
    assert life.conditions["PodReadyToStartContainers"] == "True"


def test_a_pod_whose_containers_end_well_succeeds() -> None:
    life = PodLife(**two("Never"))

    assert life.at(0).phase == "Running"
    assert (life.at(1).phase, life.state(), life.state("d")) == (
        "Succeeded",
        "terminated Completed",
        "terminated Completed",
    )
    assert life.reason("Ready") == ("PodCompleted", "")
    assert life.reason("Initialized") == ("PodCompleted", "")


def test_a_pod_that_is_never_restarted_fails_with_one_container_when_all_have_ended() -> None:
    life = PodLife(Behavior(container="c", exit_code=2), Behavior(container="d", runs_for=9), **two("Never"))

    assert (life.at(1).phase, life.state()) == ("Running", "terminated Error")
    assert life.at(9).phase == "Failed"
    assert life.reason("ContainersReady") == ("PodFailed", "")


def test_on_failure_a_container_is_started_until_it_ends_well() -> None:
    life = PodLife(Behavior(crashes=1), restartPolicy="OnFailure").at(10)

    assert (life.phase, life.container()["restartCount"]) == ("Succeeded", 1)


def test_a_container_that_ends_well_is_started_again_where_that_is_the_policy() -> None:
    life = PodLife(Behavior(runs_for=3)).at(3)

    assert (life.phase, life.container()["restartCount"]) == ("Running", 1)
    assert life.container()["lastState"]["terminated"]["exitCode"] == 0


def test_init_containers_run_one_after_the_other() -> None:
    init = [{"name": "a", "image": "a"}, {"name": "b", "image": "b"}]
    life = PodLife(Behavior(container="[ab]", runs_for=5), initContainers=init)

    assert (life.at(0).state("a"), life.state("b"), life.state()) == (
        "running",
        "waiting PodInitializing",
        "waiting PodInitializing",
    )
    assert life.reason("Initialized") == ("ContainersNotInitialized", "containers with incomplete status: [a b]")
    assert (life.at(5).state("a"), life.state("b")) == ("terminated Completed", "running")
    assert life.container("a")["ready"] is True
    assert (life.at(10).phase, life.conditions["Initialized"]) == ("Running", "True")


def test_an_init_container_that_fails_fails_the_pod_or_is_started_again() -> None:
    init = [{"name": "a", "image": "a"}]
    once = PodLife(Behavior(container="a", crashes=1), initContainers=init, restartPolicy="Never").at(60)
    again = PodLife(Behavior(container="a", crashes=1), initContainers=init).at(60)

    assert (once.phase, once.state()) == ("Failed", "waiting PodInitializing")
    assert (again.phase, again.container("a")["restartCount"]) == ("Running", 1)


def test_a_sidecar_goes_on_and_ends_with_the_others() -> None:
    init = [{"name": "s", "image": "s", "restartPolicy": "Always"}, {"name": "a", "image": "a"}]
    life = PodLife(Behavior(container="c", runs_for=20), initContainers=init, restartPolicy="Never")

    assert (life.at(10).state("s"), life.state("a"), life.state()) == ("running", "terminated Completed", "running")
    assert life.conditions["Ready"] == "True"
    assert (life.at(20).phase, life.state("s")) == ("Succeeded", "terminated Completed")


def test_a_pod_past_its_deadline_fails() -> None:
    life = PodLife(activeDeadlineSeconds=30)

    assert life.at(29).phase == "Running"
    assert life.at(30).phase == "Failed"
    assert life.pod["status"]["reason"] == "DeadlineExceeded"
    assert life.container()["state"]["terminated"]["exitCode"] == 137


def test_a_pod_that_is_told_to_go_takes_as_long_as_it_is_told_within_its_grace() -> None:
    slow, stubborn = PodLife(Behavior(stops_after=10)).at(5), PodLife(Behavior(stops_after=100)).at(5)
    slow.delete(30)
    stubborn.delete(30)

    assert (slow.at(14).gone, slow.at(15).gone) == (False, True)
    assert slow.container()["state"]["terminated"]["exitCode"] == 143
    assert (stubborn.at(34).gone, stubborn.at(35).gone) == (False, True)
    assert stubborn.container()["state"]["terminated"]["exitCode"] == 137
    assert slow.told.count("Killing: Stopping container c") == 1


def test_a_pod_that_never_started_goes_at_once() -> None:
    life = PodLife(Behavior(pull_fails=True)).at(60)
    life.delete()

    assert life.at(60).gone
    assert (life.phase, life.state()) == ("Failed", "terminated ContainerStatusUnknown")


def test_a_pod_that_ended_goes_as_it_is() -> None:
    life = PodLife(restartPolicy="Never").at(60)
    life.delete()

    assert life.at(60).gone
    assert life.phase == "Succeeded"


def test_a_readiness_gate_counts_beside_the_containers() -> None:
    life = PodLife(readinessGates=[{"conditionType": "x"}]).at(0)
    assert life.reason("Ready") == (
        "ReadinessGatesNotReady",
        'corresponding condition of pod readiness gate "x" does not exist.',
    )
    life.pod["status"]["conditions"].append({"type": "x", "status": "False"})
    life.at(0)
    assert life.reason("Ready")[1] == 'the status of pod readiness gate "x" is not "True", but False'
    life.pod["status"]["conditions"][-1]["status"] = "True"
    assert life.at(0).conditions["Ready"] == "True"


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
def test_whatever_is_told_a_life_is_sound(
    behaviors: list[Behavior], policy: str, init: str, deleted: int | None
) -> None:
    lasting = {"restartPolicy": "Always"}
    first = [{"name": name, "image": name, **(lasting if name == "s" else {})} for name in init]
    life = PodLife(*behaviors, **two(policy, initContainers=first))

    for second in range(0, 400, 10):
        if deleted is not None and second >= deleted and "deletionTimestamp" not in life.pod["metadata"]:
            life.delete()
        life.at(second)
        if life.gone:
            break

    # It is never busy without time passing, a pod that was told to go is gone, and nothing ever comes back to life.
    assert life.steps < 2000
    assert life.gone == (deleted is not None)
    phases = [state["phase"] for state in life.states]
    order = {"Pending": 0, "Running": 1, "Succeeded": 2, "Failed": 2}
    ranks = [order[phase] for phase in phases]
    assert ranks == sorted(ranks)
    assert all(one["state"] for state in life.states for one in state["containerStatuses"])


@given(
    st.lists(BEHAVIOURS, max_size=3),
    st.sampled_from(["Always", "OnFailure", "Never"]),
    st.sampled_from(["", "a", "s", "sa"]),
    st.integers(1, 7),
)
def test_looking_more_often_than_needed_changes_nothing(
    behaviors: list[Behavior], policy: str, init: str, every: int
) -> None:
    lasting = {"restartPolicy": "Always"}
    first = [{"name": name, "image": name, **(lasting if name == "s" else {})} for name in init]
    lazy, eager = (PodLife(*behaviors, **two(policy, initContainers=first)) for _ in range(2))

    lazy.at(210)
    for second in range(0, 210, every):
        eager.at(second)
    eager.at(210)

    assert eager.pod == lazy.pod
    assert eager.told == lazy.told
