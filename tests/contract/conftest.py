"""The servers that contract tests ask: the embedded control plane and a real one.

The fixture `api` gives each test a server and a namespace of its own, once for each of the two. `both` gives the two at
once, for tests that compare their answers word for word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from konverge.testing import ControlPlane
from konverge.testing.virtual_time import VirtualTimeLoop
from konverge_cluster.embedded_server import EmbeddedServer
from two_servers import Api, EmbeddedApi, RealApi, with_namespace


@pytest.fixture(scope="session")
def embedded_runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        yield runner


@pytest.fixture
def embedded_api(embedded_runner: asyncio.Runner) -> EmbeddedApi:
    """A fresh embedded server with an empty namespace."""
    return with_namespace(EmbeddedApi(EmbeddedServer(), embedded_runner))


@pytest.fixture
def real_api(control_plane: ControlPlane) -> Iterator[RealApi]:
    """The run's real server, with an empty namespace."""
    api = with_namespace(RealApi(control_plane))
    yield api
    api.request("DELETE", f"/api/v1/namespaces/{api.namespace}")


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.control_plane)])
def api(request: pytest.FixtureRequest) -> Api:
    """A server to ask: the embedded one, then a real one."""
    found: Api = request.getfixturevalue(f"{request.param}_api")
    return found


@pytest.fixture
def both(embedded_api: EmbeddedApi, real_api: RealApi) -> tuple[Api, Api]:
    """The two servers, each with a namespace of the same name."""
    made = embedded_api.request("POST", "/api/v1/namespaces", {"metadata": {"name": real_api.namespace}})
    assert made.status == 201
    embedded_api.namespace = real_api.namespace
    return embedded_api, real_api
