"""Containers as processes: start, exit, restart, init containers, sidecars, deletion."""

from __future__ import annotations

import os
import signal

import pytest

from process_clusters import (
    SLEEP,
    ProcessCluster,
    has_phase,
    is_ready,
    limited,
    pod,
    shared,
    status_of,
    terminated,
    waits_for,
)
from process_tables import processes_with

pytestmark = pytest.mark.processes


@shared
async def test_a_pod_runs_as_a_process_with_its_own_address_and_is_ready(cluster: ProcessCluster) -> None:
    await cluster.create("p", {"args": [f"echo hello $HOSTNAME; {SLEEP}"]})

    found = await cluster.wait("p", is_ready)

    assert found["status"]["phase"] == "Running"
    assert found["status"]["podIP"].startswith("127.")
    assert status_of(found)["started"] is True
    await cluster.until(lambda: cluster.log("p") == "hello p")


@shared
async def test_nothing_runs_as_root(cluster: ProcessCluster) -> None:
    await cluster.create("p", {"args": [f"id -u; {SLEEP}"]})
    await cluster.create("asked", {"args": ["id -u"], "securityContext": {"runAsUser": 0}})

    await cluster.wait("p", is_ready)
    refused = await cluster.wait("asked", waits_for("CreateContainerConfigError"))

    await cluster.until(lambda: cluster.log("p") != "")
    assert cluster.log("p") != "0"
    assert "nothing as root" in status_of(refused)["state"]["waiting"]["message"]


@shared
async def test_run_as_user_and_groups_are_used(cluster: ProcessCluster) -> None:
    context = {"runAsUser": 4711, "runAsGroup": 4712, "fsGroup": 4713}
    await cluster.create("p", {"args": ["id -u; id -g; id -G"]}, securityContext=context, restartPolicy="Never")

    await cluster.wait("p", has_phase("Succeeded"))

    if os.getuid() == 0:
        assert cluster.log("p").split() == ["4711", "4712", "4712", "4713"]
    else:
        assert cluster.log("p").split()[0] == str(os.getuid()), "only root can choose another user"


@shared
async def test_exit_codes_and_the_restart_policy_decide_the_phase(cluster: ProcessCluster) -> None:
    await cluster.create("good", {"args": ["exit 0"]}, restartPolicy="Never")
    await cluster.create("bad", {"args": ["exit 7"]}, restartPolicy="Never")

    await cluster.wait("good", has_phase("Succeeded"))
    failed = await cluster.wait("bad", has_phase("Failed"))

    assert terminated(failed)["exitCode"] == 7
    assert terminated(failed)["reason"] == "Error"


@limited
async def test_a_container_that_keeps_exiting_backs_off_and_keeps_its_previous_log(cluster: ProcessCluster) -> None:
    await cluster.create("p", {"args": ["echo run; exit 3"]})

    found = await cluster.wait("p", waits_for("CrashLoopBackOff"))

    assert status_of(found)["restartCount"] == 1, "the first restart is immediate"
    assert status_of(found)["lastState"]["terminated"]["exitCode"] == 3
    assert "back-off 30s restarting failed container=c" in status_of(found)["state"]["waiting"]["message"]
    assert cluster.log("p", run=0) == cluster.log("p", run=1) == "run"


@shared
async def test_a_program_that_does_not_exist_is_a_start_error(cluster: ProcessCluster) -> None:
    await cluster.create("p", {"command": ["no-such-program"]}, restartPolicy="Never")

    found = await cluster.wait("p", has_phase("Failed"))

    assert terminated(found)["reason"] == "StartError"
    assert terminated(found)["exitCode"] == 128
    assert 'exec: "no-such-program": executable file not found in $PATH' in terminated(found)["message"]


@shared
async def test_init_containers_run_in_order_before_the_others(cluster: ProcessCluster) -> None:
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/shared"}]}
    init = [
        {"name": "one", "image": "sh:1", "args": ["echo one >> /shared/order"], **mount},
        {"name": "two", "image": "sh:1", "args": ["echo two >> /shared/order"], **mount},
    ]
    main = {"args": ["echo main >> /shared/order; cat /shared/order"], **mount}
    volumes = [{"name": "v", "emptyDir": {}}]
    await cluster.create("p", main, initContainers=init, volumes=volumes, restartPolicy="Never")

    found = await cluster.wait("p", has_phase("Succeeded"))

    assert cluster.log("p").split() == ["one", "two", "main"]
    assert [status_of(found, name)["ready"] for name in ("one", "two")] == [True, True]


@shared
async def test_a_failing_init_container_keeps_the_others_from_starting(cluster: ProcessCluster) -> None:
    init = [{"name": "init", "image": "sh:1", "args": ["exit 1"]}]
    await cluster.create("p", {"args": ["echo started"]}, initContainers=init)

    found = await cluster.wait("p", waits_for("CrashLoopBackOff", "init"))

    assert status_of(found)["state"]["waiting"]["reason"] == "PodInitializing"
    assert cluster.log("p") == ""


@shared
async def test_a_sidecar_starts_before_the_others_and_stops_after_them(cluster: ProcessCluster) -> None:
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/shared"}]}
    script = "trap 'echo sidecar-end >> /shared/order; exit 0' TERM; echo sidecar >> /shared/order; touch /shared/up; "
    sidecar = {
        "name": "sidecar",
        "image": "sh:1",
        "restartPolicy": "Always",
        "args": [f"{script} sleep 3600 & wait"],
        "startupProbe": {"exec": {"command": ["test", "-e", "/shared/up"]}, "periodSeconds": 1},
        **mount,
    }
    main = {"args": ["echo main >> /shared/order"], **mount}
    volumes = [{"name": "v", "emptyDir": {}}]
    await cluster.create("p", main, initContainers=[sidecar], volumes=volumes, restartPolicy="Never")

    await cluster.wait("p", has_phase("Succeeded"))

    order = (cluster.process_pod("p").sandbox.directory / "volumes" / "v" / "order").read_text().split()
    assert order == ["sidecar", "main", "sidecar-end"]


@shared
async def test_a_deleted_pod_gets_sigterm_and_ends_before_its_grace_period(cluster: ProcessCluster) -> None:
    script = "trap 'echo stopped; exit 0' TERM; echo up; sleep 3600 & wait"
    await cluster.create("p", {"args": [script]}, terminationGracePeriodSeconds=60)
    await cluster.until_log("p", "up")
    directory = cluster.process_pod("p").sandbox.directory

    await cluster.delete("p")

    await cluster.wait_until_gone("p")
    assert not directory.exists()


@shared
async def test_a_pod_that_ignores_sigterm_is_killed_after_its_grace_period(cluster: ProcessCluster) -> None:
    script = "trap '' TERM; echo up; sleep 3600"
    await cluster.create("p", {"args": [script]}, terminationGracePeriodSeconds=1)
    await cluster.until_log("p", "up")

    await cluster.delete("p")

    await cluster.wait_until_gone("p")


@shared
async def test_every_descendant_is_killed_also_those_with_their_own_session(cluster: ProcessCluster) -> None:
    script = "setsid sleep 98761 & setsid sh -c 'sleep 98761 & sleep 98761' & echo up; sleep 98761"
    await cluster.create("p", {"args": [script]}, terminationGracePeriodSeconds=0)
    await cluster.until_log("p", "up")
    await cluster.until(lambda: len(processes_with("98761")) == 4)

    await cluster.delete("p")

    await cluster.until(lambda: not processes_with("98761"))


@shared
async def test_the_rest_of_a_container_ends_with_its_first_process(cluster: ProcessCluster) -> None:
    script = "setsid sleep 98762 & exit 5"
    await cluster.create("p", {"args": [script]}, restartPolicy="Never")

    failed = await cluster.wait("p", has_phase("Failed"))

    assert terminated(failed)["exitCode"] == 5
    assert not processes_with("98762")


@shared
async def test_a_killed_container_is_restarted(cluster: ProcessCluster) -> None:
    await cluster.create("p", {"args": [SLEEP]})
    await cluster.wait("p", is_ready)

    cluster.process_pod("p").containers["c"].send_signal(signal.SIGKILL)

    found = await cluster.wait("p", lambda obj: status_of(obj).get("restartCount") == 1 and is_ready(obj))
    assert status_of(found)["lastState"]["terminated"]["exitCode"] == 137


@shared
async def test_a_killed_supervisor_ends_its_pod_which_starts_again(cluster: ProcessCluster) -> None:
    await cluster.create("p", {"args": [f"sleep 98763 & {SLEEP}"]})
    await cluster.wait("p", is_ready)
    await cluster.until(lambda: len(processes_with("98763")) == 1)
    old = processes_with("98763")

    os.kill(cluster.process_pod("p").sandbox.supervisor.pid, signal.SIGKILL)

    await cluster.wait("p", lambda obj: status_of(obj).get("restartCount") == 1 and is_ready(obj))
    await cluster.until(lambda: len(processes_with("98763")) == 1 and processes_with("98763") != old)


@shared
async def test_a_container_over_its_memory_limit_is_killed(cluster: ProcessCluster) -> None:
    limits = {"resources": {"limits": {"memory": "20Mi"}}}
    await cluster.create("p", {"args": ["tail /dev/zero"], **limits}, restartPolicy="Never")

    failed = await cluster.wait("p", has_phase("Failed"))

    assert terminated(failed)["reason"] == "OOMKilled"
    assert terminated(failed)["exitCode"] == 137


@shared
async def test_termination_messages_come_from_the_file_or_the_log(cluster: ProcessCluster) -> None:
    await cluster.create("file", {"args": ["echo bye > /dev/termination-log; exit 1"]}, restartPolicy="Never")
    fallback = {"terminationMessagePolicy": "FallbackToLogsOnError", "args": ["echo last words; exit 1"]}
    await cluster.create("log", fallback, restartPolicy="Never")

    from_file = await cluster.wait("file", has_phase("Failed"))
    from_log = await cluster.wait("log", has_phase("Failed"))

    assert terminated(from_file)["message"] == "bye\n"
    assert terminated(from_log)["message"] == "last words\n"


@shared
async def test_a_pod_that_runs_too_long_fails(cluster: ProcessCluster) -> None:
    await cluster.create("p", {"args": [SLEEP]}, activeDeadlineSeconds=1)

    failed = await cluster.wait("p", has_phase("Failed"))

    assert failed["status"]["reason"] == "DeadlineExceeded"


@shared
async def test_readiness_gates_hold_a_pod_back(cluster: ProcessCluster) -> None:
    await cluster.create("p", {"args": [SLEEP]}, readinessGates=[{"conditionType": "example.com/in"}])
    await cluster.wait("p", lambda obj: status_of(obj).get("ready", False))

    condition = {"type": "example.com/in", "status": "True"}
    before = await cluster.client.get("pods", "p")
    await cluster.client.patch(
        "pods", "p", {"status": {"conditions": [condition]}}, patch_type="strategic", subresource="status"
    )

    assert not is_ready(before)
    await cluster.wait("p", is_ready)


@shared
async def test_an_image_that_is_not_in_the_table_says_what_to_add(cluster: ProcessCluster) -> None:
    other = {"name": "other", "image": "nginx:1.25"}
    await cluster.client.create(pod("mixed", {"args": [SLEEP]}, containers=[other]))
    await cluster.client.create(pod("simulated", {"image": "nginx:1.25"}))

    mixed = await cluster.wait("mixed", waits_for("ErrImagePull", "other"))
    simulated = await cluster.wait("simulated", is_ready)

    assert 'image: "nginx:*"' in status_of(mixed, "other")["state"]["waiting"]["message"]
    assert not simulated["status"]["podIP"].startswith("127.")
    assert cluster.runtime.pod(simulated.key) is None


@limited
async def test_a_log_is_bounded_on_disk(cluster: ProcessCluster) -> None:
    script = "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done"
    await cluster.create("p", {"args": [script]}, restartPolicy="Never")

    await cluster.wait("p", has_phase("Succeeded"))

    files = list((cluster.process_pod("p").sandbox.directory / "logs").iterdir())
    assert len(files) == 2
    assert sum(one.stat().st_size for one in files) <= 20_000
    assert cluster.log("p").endswith("line 2999")
