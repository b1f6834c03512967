"""PodSecurity on both servers: the same decisions, the same texts, the same warnings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from pod_security_cases import decision, run_case
from two_servers import Api

PREFIX = "pod-security.kubernetes.io/"
HARDENED = {
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def differences(both: tuple[Api, Api], seeds: Iterable[int]) -> list[Any]:
    """Return the generated cases that the two servers decide differently."""
    embedded, real = both
    decided = [(seed, run_case(embedded, seed), run_case(real, seed)) for seed in seeds]
    return [case for case in decided if case[1] != case[2]]


def test_generated_pods_are_decided_alike(both: tuple[Api, Api]) -> None:
    assert not differences(both, range(60))


@pytest.mark.campaigns
def test_300_generated_pods_are_decided_alike(both: tuple[Api, Api]) -> None:
    assert not differences(both, range(1000, 1300))


def pod(name: str, **context: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "a", "securityContext": context}]},
    }


def labelled(**labels: str) -> dict[str, Any]:
    return {PREFIX + name.replace("_", "-"): value for name, value in labels.items()}


def namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labelled(**labels)}}


def patch(api: Api, path: str, body: Any) -> Any:
    return decision(api.request("PATCH", path, body, content_type="application/merge-patch+json"))


def relabel(api: Api, labels: dict[str, str | None], query: str = "") -> Any:
    path = f"/api/v1/namespaces/{api.namespace}{query}"
    return patch(api, path, {"metadata": {"labels": {PREFIX + key: value for key, value in labels.items()}}})


def settled(ours: Any, ask: Callable[[], Any]) -> Any:
    """Ask the real server until it responds like ours: its plug-in reads pods and namespaces from a cache."""
    deadline = time.monotonic() + 10
    while True:
        theirs = ask()
        if theirs == ours or time.monotonic() > deadline:
            return theirs


@pytest.mark.parametrize(
    "labels",
    [
        {"enforce": "Restricted"},
        {"enforce": "", "enforce_version": ""},
        {"enforce_version": "v1.01", "warn": "none", "warn_version": "1.20", "audit": "all", "audit_version": "v2.0"},
        {"warn_version": "v1.9223372036854775808"},
        {"warn_version": "v1.9223372036854775807", "warn": "restricted"},
        {"enforce": "restricted", "enforce_version": "latest", "other": "x"},
    ],
)
def test_labels_of_a_new_namespace_are_validated(both: tuple[Api, Api], labels: dict[str, str]) -> None:
    ours, theirs = (
        decision(api.request("POST", "/api/v1/namespaces?dryRun=All", namespace("n", **labels))) for api in both
    )

    assert ours == theirs


def test_a_changed_label_is_validated(both: tuple[Api, Api]) -> None:
    edits: list[dict[str, str | None]] = [
        {"enforce": "baseline"},
        {"enforce": "strict"},
        {"warn": "strict"},
        {"enforce": None, "audit-version": "x"},
    ]

    ours, theirs = ([relabel(api, edit) for edit in edits] for api in both)

    assert ours == theirs


def test_a_stricter_level_names_the_existing_pods_that_violate_it(both: tuple[Api, Api]) -> None:
    embedded, real = both
    for api in both:
        for name in ("b", "a", "c"):
            api.make("pods", pod(name))
        api.make("pods", pod("privileged", privileged=True))
        api.make("pods", pod("hardened", **HARDENED))

    ours = relabel(embedded, {"enforce": "restricted"}, "?dryRun=All")
    assert len(ours[1]) == 3
    assert ours == settled(ours, lambda: relabel(real, {"enforce": "restricted"}, "?dryRun=All"))

    edits: list[dict[str, str | None]] = [
        {"enforce": "baseline"},
        {"enforce": "restricted", "enforce-version": "v1.20"},
        {"enforce-version": "v1.21"},
        {"enforce": "baseline"},
        {"warn": "restricted"},
        {"enforce": "privileged", "enforce-version": None},
    ]
    assert [relabel(embedded, edit) for edit in edits] == [relabel(real, edit) for edit in edits]


def test_an_existing_pod_can_be_changed_as_long_as_its_images_stay(both: tuple[Api, Api]) -> None:
    for api in both:
        api.make("pods", pod("p", privileged=True))
        relabel(api, {"enforce": "baseline"})
    embedded, real = both
    image = {"spec": {"containers": [{"name": "c", "image": "b", "securityContext": {"privileged": True}}]}}

    def results(api: Api) -> list[Any]:
        path = api.at("pods", "p")
        added = {"spec": {"ephemeralContainers": [{"name": "e", "image": "a"}]}}
        return [
            patch(api, path, image),
            patch(api, f"{path}/ephemeralcontainers", added),
            patch(api, path, {"metadata": {"annotations": {"a": "b"}}}),
            patch(api, f"{path}/status", {"status": {"message": "x"}}),
        ]

    ours = results(embedded)
    assert [each[0] for each in ours] == [403, 403, 200, 200]
    settled(403, lambda: patch(real, real.at("pods", "p") + "?dryRun=All", image)[0])
    assert ours == results(real)


def test_a_generated_name_is_in_the_message(both: tuple[Api, Api]) -> None:
    for api in both:
        name = f"{api.namespace}-generated"
        api.request("POST", "/api/v1/namespaces", namespace(name, enforce="baseline"))
        api.namespace = name
        document = pod("", privileged=True) | {"metadata": {"generateName": "web-"}}

        reply = api.request("POST", api.at("pods"), document).json()

        generated = reply["details"]["name"]
        assert generated.startswith("web-")
        assert len(generated) == 9
        assert reply["message"].startswith(f'pods "{generated}" is forbidden: violates PodSecurity "baseline:latest": ')


def test_warnings_that_are_too_long_are_shortened_alike(both: tuple[Api, Api]) -> None:
    names = [f"{'long-name-' * 6}{index:03}" for index in range(60)]
    containers = [{"name": name, "image": "a"} for name in names]
    volumes = [
        {"name": f"v{index}", "scaleIO": {"gateway": "g", "system": "s", "secretRef": {"name": "a"}, "volumeName": "v"}}
        for index in range(70)
    ]
    results = []
    for api in both:
        name = f"{api.namespace}-long"
        api.request("POST", "/api/v1/namespaces", namespace(name, warn="restricted"))
        api.namespace = name
        document = {"metadata": {"name": "p"}, "spec": {"containers": containers, "volumes": volumes}}
        results.append(decision(api.request("POST", api.at("pods") + "?dryRun=All", document)))

    assert results[0] == results[1]
    assert max(map(len, results[0][1])) < 300
