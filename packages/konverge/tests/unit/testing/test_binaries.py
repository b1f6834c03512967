"""The search for the programs of the control plane."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from konverge.errors import ControlPlaneError
from konverge.testing.binaries import NEEDED, PROGRAMS, cache_directory, find_binaries, kubernetes_version

Write = Callable[[Path, str], Path]
SCRIPT = "#!/bin/sh\n"


def fill(directory: Path, write: Write, names: tuple[str, ...] = NEEDED) -> Path:
    for name in names:
        write(directory / name, SCRIPT)
    return directory


def environ(tmp_path: Path, assets: Path | None = None) -> dict[str, str]:
    named = {"KUBEBUILDER_ASSETS": str(assets)} if assets else {}
    return {"XDG_CACHE_HOME": str(tmp_path / "cache"), **named}


def test_kubebuilder_assets_come_first(tmp_path: Path, write: Write) -> None:
    assets = fill(tmp_path / "assets", write)
    env = environ(tmp_path, assets)
    fill(cache_directory(env), write)

    assert find_binaries(environ=env) == assets


def test_the_users_cache_comes_second(tmp_path: Path, write: Write) -> None:
    env = environ(tmp_path, tmp_path / "nowhere")
    cache = fill(cache_directory(env), write)

    assert find_binaries(environ=env) == cache


def test_programs_of_two_places_are_never_mixed(tmp_path: Path, write: Write) -> None:
    assets = fill(tmp_path / "assets", write)
    env = environ(tmp_path, assets)
    cache = fill(cache_directory(env), write, tuple(PROGRAMS))

    assert find_binaries(environ=env) == assets
    assert find_binaries((*NEEDED, "kube-controller-manager"), environ=env) == cache


def test_the_error_names_every_directory_every_missing_program_and_the_fix(tmp_path: Path, write: Write) -> None:
    assets = fill(tmp_path / "assets", write, ("etcd",))
    env = environ(tmp_path, assets)

    with pytest.raises(ControlPlaneError) as caught:
        find_binaries(environ=env)

    assert str(caught.value) == (
        f"find control plane: KUBEBUILDER_ASSETS {assets} has no kube-apiserver, kubectl; "
        f"the cache {cache_directory(env)} has no etcd, kube-apiserver, kubectl "
        "(`make control-plane`, or `python -m konverge.testing.build`, builds all of it)"
    )


def test_a_file_that_cannot_be_run_is_missing(tmp_path: Path, write: Write) -> None:
    assets = fill(tmp_path / "assets", write)
    (assets / "etcd").chmod(0o644)

    with pytest.raises(ControlPlaneError, match=r"the directory .* has no etcd "):
        find_binaries(directory=assets)


def test_the_cache_follows_the_xdg_rules() -> None:
    below = Path("konverge", "control-plane", kubernetes_version())

    assert cache_directory({"XDG_CACHE_HOME": "/var/caches"}) == Path("/var/caches") / below
    assert cache_directory({"HOME": "/home/me"}) == Path("/home/me/.cache") / below
    assert cache_directory({"XDG_CACHE_HOME": "relative", "HOME": "/home/me"}) == Path("/home/me/.cache") / below


def test_the_pinned_version_is_a_1_36() -> None:
    assert kubernetes_version().startswith("v1.36.")
