"""Exec plugins: real programs on a real event loop, with simulated clocks."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from konverge.client.access.credentials import Identity
from konverge.client.access.exec_plugin import MIN_RUN_INTERVAL, ExecPlugin, ExecSpec
from konverge.client.access.locations import Location
from konverge.errors import ConfigError
from konverge.testing.certificates import Authority

V1 = "client.authentication.k8s.io/v1"
START = datetime(2030, 1, 1, tzinfo=UTC)


def credential(version: str = V1, **status: Any) -> str:
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})


class Plugin:
    """A shell script that counts its runs, and the hands on both clocks."""

    def __init__(self, directory: Path, script: str, **spec: Any) -> None:
        self.directory = directory
        self.path = directory / "plugin"
        self.write(script)
        location = Location("kubeconfig x", "users[0].user.exec")
        self.spec = replace(ExecSpec(command=str(self.path), location=location, api_version=V1), **spec)
        self.now = START
        self.clock = 0.0

    def write(self, script: str) -> None:
        self.path.write_text(f"#!/bin/sh\necho run >> {self.directory}/runs\n{script}\n")
        self.path.chmod(0o700)

    def prints(self, text: str) -> None:
        (self.directory / "output").write_text(text)
        self.write(f"cat {self.directory}/output")

    @property
    def runs(self) -> int:
        log = self.directory / "runs"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def credentials(
        self,
        *,
        environ: Mapping[str, str] = os.environ,
        terminal: Callable[[], bool] = lambda: False,
        deadline: float | None = 30,
    ) -> ExecPlugin:
        return ExecPlugin(
            self.spec,
            environ=environ,
            terminal=terminal,
            now=lambda: self.now,
            clock=lambda: self.clock,
            deadline=deadline,
        )

    def error_message(self, **arguments: Any) -> str:
        with pytest.raises(ConfigError) as caught:
            asyncio.run(self.credentials(**arguments).identity())
        return str(caught.value)


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    made = Plugin(tmp_path, "")
    made.prints(credential(token="one"))
    return made


# what it gives


def test_a_token_becomes_a_bearer_header(plugin: Plugin) -> None:
    assert asyncio.run(plugin.credentials().identity()) == Identity("Bearer one")


def test_a_certificate_with_its_key_becomes_the_certificate_of_the_connection(plugin: Plugin, tmp_path: Path) -> None:
    pair = Authority(tmp_path / "authority", "test").sign("me", file="me")
    cert, key = pair.cert.read_text(), pair.key.read_text()
    plugin.prints(credential(clientCertificateData=cert, clientKeyData=key, token="one"))

    identity = asyncio.run(plugin.credentials().identity())

    assert identity.authorization == "Bearer one"
    assert identity.certificate is not None
    assert (identity.certificate.certificate, identity.certificate.key) == (cert.encode(), key.encode())


def test_v1beta1_is_spoken_too(tmp_path: Path) -> None:
    version = "client.authentication.k8s.io/v1beta1"
    plugin = Plugin(tmp_path, "", api_version=version)
    plugin.prints(credential(version, token="beta"))

    assert asyncio.run(plugin.credentials().identity()) == Identity("Bearer beta")


# how it is run


def test_it_gets_its_arguments_and_the_environment_with_its_own_on_top(tmp_path: Path) -> None:
    script = f"""echo "$1|$2|$OURS|$THEIRS|$BOTH" > {tmp_path}/seen
    echo '{credential(token="one")}'"""
    plugin = Plugin(tmp_path, script, args=("a b", "$c"), env={"THEIRS": "2", "BOTH": "theirs"})

    asyncio.run(plugin.credentials(environ={"PATH": os.environ["PATH"], "OURS": "1", "BOTH": "ours"}).identity())

    assert (tmp_path / "seen").read_text() == "a b|$c|1|2|theirs\n"


@pytest.mark.parametrize("cluster", [None, {"server": "https://example", "config": {"audience": "é"}}])
def test_it_is_told_about_the_cluster_only_when_it_asks(tmp_path: Path, cluster: dict[str, Any] | None) -> None:
    script = f"""printf %s "$KUBERNETES_EXEC_INFO" > {tmp_path}/info
    echo '{credential(token="one")}'"""
    plugin = Plugin(tmp_path, script, cluster=cluster)

    asyncio.run(plugin.credentials().identity())

    spec = {"interactive": False} if cluster is None else {"cluster": cluster, "interactive": False}
    assert json.loads((tmp_path / "info").read_text()) == {"kind": "ExecCredential", "apiVersion": V1, "spec": spec}


def test_a_bare_name_is_found_on_the_path_and_never_in_the_working_directory(
    plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin.spec = replace(plugin.spec, command="plugin")
    monkeypatch.chdir(plugin.directory)
    path = f"{plugin.directory}:{os.environ['PATH']}"

    assert asyncio.run(plugin.credentials(environ={"PATH": path}).identity()) == Identity("Bearer one")
    assert "the program was not found" in plugin.error_message(environ={"PATH": f".::{os.environ['PATH']}"})


def test_a_plugin_that_is_not_interactive_has_no_standard_input(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, f"""cat > {tmp_path}/read; echo '{credential(token="one")}'""")

    asyncio.run(plugin.credentials(terminal=lambda: True).identity())

    assert (tmp_path / "read").read_bytes() == b""


def test_an_interactive_plugin_is_told_so_when_there_is_a_terminal(tmp_path: Path) -> None:
    script = f"""printf %s "$KUBERNETES_EXEC_INFO" >> {tmp_path}/info
    echo '{credential(token="one")}'"""
    plugin = Plugin(tmp_path, script, interactive_mode="IfAvailable")

    for terminal in (True, False):
        asyncio.run(plugin.credentials(terminal=lambda terminal=terminal: terminal).identity())  # type: ignore[misc]

    assert (tmp_path / "info").read_text().count('"interactive":true') == 1
    assert (tmp_path / "info").read_text().count('"interactive":false') == 1


def test_a_plugin_that_must_ask_is_not_run_without_a_terminal(plugin: Plugin) -> None:
    plugin.spec = replace(plugin.spec, interactive_mode="Always")

    assert "it needs a terminal" in plugin.error_message()
    assert plugin.runs == 0
    assert asyncio.run(plugin.credentials(terminal=lambda: True).identity()) == Identity("Bearer one")


# when it is run


def test_what_has_no_expiry_is_kept(plugin: Plugin) -> None:
    async def ask() -> None:
        credentials = plugin.credentials()
        first = await credentials.identity()
        plugin.now += timedelta(days=3650)
        plugin.clock += 1e9
        assert await credentials.identity() is first

    asyncio.run(ask())
    assert plugin.runs == 1


def test_it_is_run_again_after_the_expiry_and_not_before(plugin: Plugin) -> None:
    plugin.prints(credential(token="one", expirationTimestamp="2030-01-01T02:00:00+01:00"))

    async def ask() -> None:
        credentials = plugin.credentials()
        first = await credentials.identity()
        plugin.prints(credential(token="two"))
        plugin.now, plugin.clock = START + timedelta(hours=1), 3600
        assert await credentials.identity() is first
        plugin.now += timedelta(seconds=1)
        assert await credentials.identity() == Identity("Bearer two")

    asyncio.run(ask())
    assert plugin.runs == 2


def test_a_clock_that_is_ahead_does_not_run_it_for_every_request(plugin: Plugin) -> None:
    plugin.prints(credential(token="one", expirationTimestamp="2029-12-31T00:00:00Z"))

    async def ask() -> None:
        credentials = plugin.credentials()
        for plugin.clock in (0, 1, MIN_RUN_INTERVAL - 0.1, MIN_RUN_INTERVAL, MIN_RUN_INTERVAL + 1):
            assert await credentials.identity() == Identity("Bearer one")

    asyncio.run(ask())
    assert plugin.runs == 2


def test_requests_at_the_same_moment_share_one_run(plugin: Plugin) -> None:
    async def ask() -> None:
        credentials = plugin.credentials()
        identities = await asyncio.gather(*(credentials.identity() for _ in range(20)))
        assert all(identity is identities[0] for identity in identities)

    asyncio.run(ask())
    assert plugin.runs == 1


def test_a_rejected_identity_is_replaced_by_one_run_for_all_who_were_rejected(plugin: Plugin) -> None:
    async def ask() -> None:
        credentials = plugin.credentials()
        rejected = await credentials.identity()
        plugin.prints(credential(token="two"))
        plugin.clock = MIN_RUN_INTERVAL
        renewed = await asyncio.gather(*(credentials.renew(rejected) for _ in range(20)))
        assert set(renewed) == {Identity("Bearer two")}
        assert await credentials.identity() == Identity("Bearer two")

    asyncio.run(ask())
    assert plugin.runs == 2


def test_the_same_token_again_is_nothing_better(plugin: Plugin) -> None:
    async def ask() -> None:
        credentials = plugin.credentials()
        rejected = await credentials.identity()
        plugin.clock = MIN_RUN_INTERVAL
        assert await credentials.renew(rejected) is None

    asyncio.run(ask())
    assert plugin.runs == 2


def test_a_server_that_rejects_everything_does_not_run_it_over_and_over(plugin: Plugin) -> None:
    async def ask() -> None:
        credentials = plugin.credentials()
        for _ in range(10):
            assert await credentials.renew(await credentials.identity()) is None

    asyncio.run(ask())
    assert plugin.runs == 1


def test_it_serves_clients_of_several_threads_and_loops(plugin: Plugin) -> None:
    plugin.prints(credential(token="one", expirationTimestamp="2029-12-31T00:00:00Z"))
    credentials = plugin.credentials()
    found: list[Identity] = []

    async def ask() -> None:
        found.extend(await asyncio.gather(*(credentials.identity() for _ in range(5))))

    threads = [threading.Thread(target=asyncio.run, args=(ask(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == [Identity("Bearer one")] * 15


def test_after_a_failure_the_next_request_runs_it_again(plugin: Plugin) -> None:
    credentials = plugin.credentials()
    plugin.write("exit 1")
    with pytest.raises(ConfigError):
        asyncio.run(credentials.identity())

    plugin.prints(credential(token="better"))

    assert asyncio.run(credentials.identity()) == Identity("Bearer better")


# what can be wrong


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("exit 3", "it exited with status 3"),
        ("kill -9 $$", "it was killed by signal 9"),
        ("true", "its output is not JSON"),
        ("echo garbage", "its output is not JSON"),
        ("printf '\\377'", "its output is not JSON"),
        ("echo []", "its output is not an ExecCredential: Expected `object`, got `array`"),
        ("echo '{}'", "its output is not of kind ExecCredential"),
        ("head -c 2000000 /dev/zero", "it printed more than 1024 KiB"),
        ("yes", "it printed more than 1024 KiB"),
    ],
)
def test_a_plugin_that_fails_says_how(tmp_path: Path, script: str, expected: str) -> None:
    plugin = Plugin(tmp_path, script)

    message = plugin.error_message()

    assert message.startswith(f"kubeconfig x: exec plugin {plugin.path} of users[0].user.exec: ")
    assert expected in message
    assert "\n" not in message


OTHER = "client.authentication.k8s.io/v1beta1"


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (credential(OTHER, token="x"), f"expected an output of {V1}, got {OTHER}"),
        (credential("x", token="x"), f"expected an output of {V1}, got another apiVersion"),
        (credential(token="x").replace("ExecCredential", "Secret"), "its output is not of kind ExecCredential"),
        (json.dumps({"apiVersion": V1, "kind": "ExecCredential"}), "its output has no status"),
        (credential(), "its output has neither a token nor a certificate"),
        (credential(token=""), "its output has neither a token nor a certificate"),
        (credential(token=5), "Expected `str | null`, got `int` - at `$.status.token`"),
        (credential(token="a\nb"), "characters that a header cannot contain, at status.token"),
        (credential(token="x", expirationTimestamp="soon"), "- at `$.status.expirationTimestamp`"),
        (credential(token="x", expirationTimestamp="2030-01-01T00:00:00"), "- at `$.status.expirationTimestamp`"),
        (credential(clientCertificateData="x"), "its output has a certificate or a key, not both"),
        (credential(token="x", clientKeyData="x"), "its output has a certificate or a key, not both"),
        (credential(clientCertificateData="x", clientKeyData="y"), "expected PEM certificates, at status.clientCert"),
    ],
)
def test_an_answer_of_no_use_says_why(plugin: Plugin, output: str, expected: str) -> None:
    plugin.prints(output)

    assert expected in plugin.error_message()


def test_a_missing_program_comes_with_its_install_hint(plugin: Plugin) -> None:
    plugin.spec = replace(plugin.spec, command="no-such-plugin", install_hint="brew install it")

    message = plugin.error_message(environ={"PATH": "/nowhere"})

    assert message.endswith(
        "exec plugin no-such-plugin of users[0].user.exec: the program was not found: brew install it"
    )


def test_a_file_that_is_no_program_is_told_apart_from_a_missing_one(plugin: Plugin) -> None:
    plugin.path.chmod(0o600)
    assert "it cannot be started: Permission denied" in plugin.error_message()
    plugin.spec = replace(plugin.spec, command=str(plugin.directory))
    assert "it cannot be started: Permission denied" in plugin.error_message()


def test_arguments_that_no_program_can_have_are_refused(plugin: Plugin) -> None:
    plugin.spec = replace(plugin.spec, args=("a\0b",))

    assert "it cannot be started: a NUL character" in plugin.error_message()


class SkippingLoop(asyncio.SelectorEventLoop):
    """A real event loop whose clock can be put forward, so that no test waits for a deadline."""

    skipped = 0.0

    def time(self) -> float:
        return super().time() + self.skipped


class Hanging:
    """A plugin that says through a pipe that it is running, and then does not end."""

    def __init__(self, plugin: Plugin, script: str) -> None:
        self.plugin = plugin
        self.pipe = plugin.directory / "started"
        os.mkfifo(self.pipe)
        plugin.write(script.format(pipe=self.pipe))

    async def started(self) -> list[int]:
        """Wait until it runs; return the process ids that it tells."""
        return [int(pid) for pid in (await asyncio.to_thread(self.pipe.read_text)).split()]

    def error_message_after(self, seconds: float, *, deadline: float | None) -> tuple[str, list[int]]:
        async def ask() -> tuple[str, list[int]]:
            asking = asyncio.ensure_future(self.plugin.credentials(deadline=deadline).identity())
            pids = await self.started()
            loop = asyncio.get_running_loop()
            assert isinstance(loop, SkippingLoop)
            loop.skipped = seconds
            with pytest.raises(ConfigError) as caught:
                await asking
            return str(caught.value), pids

        with asyncio.Runner(loop_factory=SkippingLoop) as runner:
            return runner.run(ask())


def assert_ends(pid: int) -> None:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with os.fdopen(process):
        ended, _, _ = select.select([process], [], [], 10)
    assert ended


@pytest.mark.parametrize(("deadline", "passed", "shown"), [(5, 5, "5 s"), (None, 10, "10 s")])
def test_a_hanging_plugin_is_killed_at_its_deadline_with_all_it_started(
    plugin: Plugin, deadline: float | None, passed: float, shown: str
) -> None:
    hanging = Hanging(plugin, "sleep 300 & echo $! $$ > {pipe}; wait")

    message, pids = hanging.error_message_after(passed, deadline=deadline)

    assert f"it was not done after {shown}" in message
    assert len(pids) == 2
    for pid in pids:
        assert_ends(pid)


def test_a_plugin_that_leaves_its_output_to_a_descendant_is_not_waited_for_after_the_deadline(plugin: Plugin) -> None:
    hanging = Hanging(plugin, "setsid sh -c 'echo $$ > {pipe}; exec sleep 300' & exit 0")

    message, (pid,) = hanging.error_message_after(30, deadline=30)

    os.kill(pid, signal.SIGKILL)
    assert "it was not done after 30 s" in message


def test_a_cancelled_request_kills_the_plugin_that_it_ran(plugin: Plugin) -> None:
    hanging = Hanging(plugin, "echo $$ > {pipe}; exec sleep 300")

    async def cancel() -> int:
        asking = asyncio.ensure_future(plugin.credentials().identity())
        (pid,) = await hanging.started()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        return pid

    assert_ends(asyncio.run(cancel()))


def test_whoever_waited_for_a_cancelled_run_starts_another(plugin: Plugin) -> None:
    answer = credential(token="second").replace("{", "{{").replace("}", "}}")
    first_run = f"[ $(wc -l < {plugin.directory}/runs) = 1 ]"
    hanging = Hanging(plugin, f"{first_run} && echo $$ > {{pipe}} && exec sleep 300\necho '{answer}'")

    async def cancel_the_first() -> Identity:
        credentials = plugin.credentials()
        first = asyncio.ensure_future(credentials.identity())
        await hanging.started()
        second = asyncio.ensure_future(credentials.identity())
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert asyncio.run(cancel_the_first()) == Identity("Bearer second")
