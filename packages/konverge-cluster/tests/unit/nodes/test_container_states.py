"""The IDs in container statuses: of images, of containers, and of terminated containers."""

from __future__ import annotations

from datetime import UTC, datetime

from konverge_cluster.nodes.container_states import container_status, parse_container_status

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_same_image_has_the_same_id_in_every_pod() -> None:
    started = [
        container_status(parse_container_status("c", image, None).start(NOW), uid)
        for image, uid in (("a", "1"), ("a", "2"), ("b", "1"))
    ]

    first, same, other = (one["imageID"] for one in started)
    assert first == same != other
    assert len(first.partition("@sha256:")[2]) == 64
    assert len({one["containerID"] for one in started}) == 2


def test_the_last_state_has_the_id_of_the_terminated_container() -> None:
    ended = parse_container_status("c", "a", None).start(NOW).terminate(1, NOW)
    first = container_status(ended, "u")["containerID"]
    assert container_status(ended, "u")["state"]["terminated"]["containerID"] == first

    waiting = container_status(ended.wait("CrashLoopBackOff"), "u")
    assert waiting["containerID"] == waiting["lastState"]["terminated"]["containerID"] == first

    again = container_status(ended.start(NOW), "u")
    assert again["containerID"] != first
    assert again["lastState"]["terminated"]["containerID"] == first
