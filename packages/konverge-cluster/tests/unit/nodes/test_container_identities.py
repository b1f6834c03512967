"""The identities in container statuses: those of images, of containers, and of the ones before."""

from __future__ import annotations

from datetime import UTC, datetime

from konverge_cluster.nodes.runs import read_run, write_run

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_same_image_has_the_same_identity_in_every_pod() -> None:
    started = [
        write_run(read_run("c", image, None).starts(NOW), uid) for image, uid in (("a", "1"), ("a", "2"), ("b", "1"))
    ]

    first, same, other = (one["imageID"] for one in started)
    assert first == same != other
    assert len(first.partition("@sha256:")[2]) == 64
    assert len({one["containerID"] for one in started}) == 2


def test_the_last_state_names_the_container_that_ended() -> None:
    ended = read_run("c", "a", None).starts(NOW).ends(1, NOW)
    first = write_run(ended, "u")["containerID"]
    assert write_run(ended, "u")["state"]["terminated"]["containerID"] == first

    waiting = write_run(ended.waits("CrashLoopBackOff"), "u")
    assert waiting["containerID"] == waiting["lastState"]["terminated"]["containerID"] == first

    again = write_run(ended.starts(NOW), "u")
    assert again["containerID"] != first
    assert again["lastState"]["terminated"]["containerID"] == first
