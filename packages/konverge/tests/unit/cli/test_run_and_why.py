"""`konverge run` and `konverge why`: invalid values, each reported in one line with the option and the variable."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from konverge.cli import main
from konverge.cli.dev_address import read_dev_address, write_dev_address
from konverge.cli.run import run as run_command

OPERATOR = """
from konverge.manager import Operator
from konverge.k8s.core.v1 import ConfigMap
from konverge.webhooks import validating

@validating(ConfigMap)
def check(obj, old, request): ...

operator = Operator(name="plain", controllers=(), webhooks=(check,))
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with an operator and without a cluster; valid options fail at the missing kubeconfig."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    Path("operator.py").write_text(OPERATOR)
    return tmp_path


def run(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(main, ["run", "operator.py", "--metrics-port", "0", *arguments], env=environment)


def is_accepted(result: Result) -> bool:
    return result.exit_code == 1 and "kubeconfig" in result.output.lower()


def refusals(flag: str, text: str, variable: str = "") -> Iterator[str]:
    """Return the error line for a value, as an option and as a variable; an empty variable counts as not set."""
    variable = variable or f"KONVERGE_{flag[2:].replace('-', '_').upper()}"
    results = [CliRunner().invoke(main, ["run", "operator.py", f"{flag}={text}"])]
    if text.strip():
        results.append(CliRunner().invoke(main, ["run", "operator.py"], env={variable: text}))
    for result in results:
        assert result.exit_code == 2, result.output
        line = result.output.splitlines()[-1]
        assert flag in line
        assert f"(env var: '{variable}')" in line
        yield line


@pytest.mark.parametrize(
    "text", ["nan", "inf", "-inf", "0", "-1", "0.5", "1.5", "15s", "", "1e300", "86401", "9" * 400]
)
def test_an_invalid_lease_duration_is_refused(text: str) -> None:
    for line in refusals("--lease-duration", text):
        assert "expected a whole number of seconds from 1 to 86400, got " in line


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "20s", "", "1e9"])
def test_an_invalid_grace_is_refused(text: str) -> None:
    for line in refusals("--grace", text):
        assert "expected a number of seconds from 0 to 86400, got " in line


@pytest.mark.parametrize("text", ["1", "15", "15.0", "86400"])
def test_whole_seconds_are_valid_lease_durations(text: str) -> None:
    assert is_accepted(run("--leader-elect", "--lease-duration", text))
    assert is_accepted(run("--leader-elect", KONVERGE_LEASE_DURATION=text))


@pytest.mark.parametrize("text", ["", "My-Lease", "a/b", "a b", "a\nb", "-a", "x" * 254, "ä"])
def test_an_invalid_lease_name_is_refused(text: str) -> None:
    for line in refusals("--lease-name", text):
        assert "is not a valid object name: use lower-case letters" in line


@pytest.mark.parametrize("flag", ["--namespace", "--lease-namespace"])
@pytest.mark.parametrize("text", ["", "Bad_NS", "a.b", "a/b", "x" * 64, "ä", "-"])
def test_an_invalid_namespace_is_refused(flag: str, text: str) -> None:
    for line in refusals(flag, text, "KONVERGE_NAMESPACES" if flag == "--namespace" else ""):
        assert "is not a valid namespace name: use lower-case letters" in line


@pytest.mark.parametrize("flag", ["--metrics-port", "--probe-port", "--webhook-port"])
@pytest.mark.parametrize("text", ["-1", "65536", "http", "80.5", "", "tcp://10.0.0.1:8080", "9" * 5000])
def test_an_invalid_port_is_refused(flag: str, text: str) -> None:
    assert len(list(refusals(flag, text))) >= 1


@pytest.mark.parametrize("text", ["a b", "localhost:80", "http://localhost", "1.2.3.4.5/8", "a\nb", "ä"])
def test_an_invalid_host_is_refused(text: str) -> None:
    for line in refusals("--metrics-host", text):
        assert "is not a valid IP address or host name" in line


@pytest.mark.parametrize(
    ("flag", "text"),
    [("--log-level", "loud"), ("--log-format", "xml"), ("--kubeconfig", "no/such"), ("--kubeconfig", ".")],
)
def test_other_options_name_their_variable_too(flag: str, text: str) -> None:
    assert len(list(refusals(flag, text))) == 2


def test_a_switch_that_is_neither_on_nor_off_names_its_variable() -> None:
    result = run(KONVERGE_LEADER_ELECT="maybe")
    assert result.exit_code == 2
    assert "KONVERGE_LEADER_ELECT" in result.output


@pytest.mark.parametrize(("flag", "host"), [("--metrics-port", "127.0.0.1"), ("--webhook-port", "0.0.0.0")])
def test_the_error_for_a_port_in_use_names_the_option(flag: str, host: str) -> None:
    with socket.create_server((host, 0)) as taken:
        port = str(taken.getsockname()[1])
        result = run("--metrics-host", "127.0.0.1", flag, port)
    assert result.exit_code == 1
    (line,) = result.output.splitlines()
    assert port in line
    assert ": Address already in use (choose another with " in line
    assert f"{flag}, env var: 'KONVERGE_{flag[2:].replace('-', '_').upper()}'" in line


def test_listening_on_an_address_of_another_machine_fails() -> None:
    result = run("--metrics-host", "192.0.2.1", "--metrics-port", "8080")
    assert result.exit_code == 1
    assert "cannot listen on 192.0.2.1:8080" in result.output


def test_the_same_port_for_metrics_and_webhooks_is_refused() -> None:
    result = run("--metrics-port", "18080", "--webhook-port", "18080")
    assert result.exit_code == 2
    line = result.output.splitlines()[-1]
    for name in ("--metrics-port", "KONVERGE_METRICS_PORT", "--webhook-port", "KONVERGE_WEBHOOK_PORT", "18080"):
        assert name in line


@pytest.mark.parametrize("content", ["", "a: [", "- 1", "clusters: 3", "\x00"])
def test_an_invalid_kubeconfig_is_reported_without_a_traceback(content: str) -> None:
    Path("config").write_text(content)
    result = run("--kubeconfig", "config")
    assert result.exit_code == 1
    assert "config" in result.output
    assert "Traceback" not in result.output
    assert isinstance(result.exception, SystemExit)


def test_help_names_the_variable_of_every_option() -> None:
    printed = CliRunner().invoke(main, ["run", "--help"]).output
    for parameter in run_command.params:
        if parameter.envvar:
            assert str(parameter.envvar) in "".join(printed.split())
    assert sum(parameter.envvar is not None for parameter in run_command.params) == 18


def test_the_same_port_for_metrics_and_probes_is_refused() -> None:
    result = run("--metrics-port", "18080", "--probe-port", "18080")
    assert result.exit_code == 2
    assert "--probe-port (env var: 'KONVERGE_PROBE_PORT') are both 18080" in result.output


def test_probes_on_a_port_of_their_own_need_metrics() -> None:
    result = run("--metrics-port", "0", "--probe-port", "18080")
    assert result.exit_code == 2
    assert "--probe-port (env var: 'KONVERGE_PROBE_PORT') needs --metrics-port" in result.output


# konverge why


def why(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["why", *arguments])


@pytest.mark.parametrize("controller", ["", " ", "a\r\nb"])
def test_an_invalid_controller_name_is_refused(controller: str) -> None:
    result = why(controller, "shop/web")
    assert result.exit_code == 2
    assert "is not a valid controller name: use its name or kind, such as WebApp" in result.output


@pytest.mark.parametrize("key", ["", "/", "shop/", "/web", "a/b/c", " ", "shop/web\r\nHost: x", "shop/ web "])
def test_an_invalid_key_is_refused(key: str) -> None:
    result = why("WebApp", key)
    assert result.exit_code == 2
    assert "write 'namespace/name', or 'name'" in result.output


@pytest.mark.parametrize("address", ["", "8080x", "localhost", "localhost:", "localhost:0", "a:65536", "a b:80", "h:٣"])
def test_an_invalid_address_is_refused(address: str) -> None:
    result = why("WebApp", "shop/web", "--address", address)
    assert result.exit_code == 2
    assert "'--address' (env var: 'KONVERGE_ADDRESS')" in result.output


@pytest.mark.parametrize("address", ["127.0.0.1:1", ":1", "[::1]:1", f"{'x' * 70}.example:1"])
def test_an_address_without_a_listener_is_reported_in_one_line(address: str) -> None:
    result = why("WebApp", "shop/web", "--address", address)
    assert result.exit_code == 1
    (line,) = result.output.splitlines()
    assert line.startswith("Error: no operator answers at ")
    assert address.rpartition(":")[0] in line


@contextmanager
def answering(response: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Start a server that sends one response to any request; return its address and the requests."""
    requests: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                requests.append(connection.recv(65536))
                connection.sendall(response)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}", requests
        thread.join()


@pytest.mark.parametrize(
    "response",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x15\x03\x03\x00\x02\x02\x46",
        b"HTTP/1.1 200 OK\r\n\r\n<html>",
        b"HTTP/1.1 200 OK\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n\r\n[1]",
    ],
)
def test_another_server_is_not_mistaken_for_an_operator(response: bytes) -> None:
    with answering(response) as (address, _):
        result = why("WebApp", "shop/web", "--address", address)
    assert result.exit_code == 1
    why_not = "(--address is that of its metrics; a protected one needs --token-file)"
    assert result.output == f"Error: the server at {address} is not a konverge operator {why_not}\n"


@pytest.mark.parametrize("host", ["operator.example", "10.0.0.1", "0.0.0.0", "[2001:db8::1]"])
def test_a_token_is_sent_to_a_loopback_address_only(host: str) -> None:
    Path("token").write_text("secret")
    result = why("WebApp", "--address", f"{host}:8443", "--token-file", "token")
    assert result.exit_code == 2
    assert f"a token is sent to a loopback address only, not to {host} (use kubectl port-forward)" in result.output


@pytest.mark.parametrize("content", ["", "\n", "a b", "a\r\nHost: x", "ä"])
def test_a_file_without_a_token_is_refused(content: str) -> None:
    Path("token").write_text(content)
    result = why("WebApp", "--address", "127.0.0.1:8443", "--token-file", "token")
    assert result.exit_code == 2
    assert "--token-file has no token in it" in result.output


def test_a_token_is_not_sent_without_tls() -> None:
    Path("token").write_text("secret")
    with answering(b"HTTP/1.1 200 OK\r\n\r\n{}") as (address, requests):
        result = why("WebApp", "--address", address, "--token-file", "token")
    assert result.exit_code == 1
    assert f"{address} does not serve HTTPS" in result.output
    assert b"secret" not in requests[0]


def test_an_error_of_the_operator_is_reported_in_one_line() -> None:
    with answering(b"HTTP/1.1 404 Not Found\r\n\r\nno such\ncontroller\n") as (address, _):
        result = why("WebApp", "shop/web", "--address", address)
    assert result.exit_code == 1
    assert result.output == f"Error: {address}/debug/why/webapp/shop/web: no such controller\n"


def test_names_are_quoted_in_the_request() -> None:
    with answering(b"HTTP/1.1 200 OK\r\n\r\n[{}]") as (address, requests):
        result = why("Role?x", "shop/system:reader#1", "--address", address)
    assert result.exit_code == 0, result.output
    assert requests[0].startswith(b"GET /debug/why/role%3Fx/shop/system%3Areader%231 HTTP/1.0\r\n")


def test_without_a_key_the_known_keys_are_listed() -> None:
    body = b'{"webapp": ["shop/web", "shop/api"], "node": []}'
    with answering(b"HTTP/1.1 200 OK\r\n\r\n" + body) as (address, requests):
        result = why("--address", address)
    assert result.output == "webapp  shop/web\nwebapp  shop/api\nnode  nothing reconciled yet\n"
    assert requests[0].startswith(b"GET /debug/why HTTP/1.0\r\n")


@pytest.mark.parametrize("by_variable", [True, False])
def test_a_running_dev_is_found_by_its_kubeconfig(by_variable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    file = Path("other.kubeconfig" if by_variable else "konverge.kubeconfig")
    file.write_text("clusters: [{name: konverge, cluster: {server: 'https://127.0.0.1:1'}}]")
    if by_variable:
        monkeypatch.setenv("KUBECONFIG", f"missing{os.pathsep}{file}")
    with answering(b"HTTP/1.1 200 OK\r\n\r\n{}") as (address, _):
        write_dev_address(file, address)
        assert why("webapp").output == "this operator has no controllers\n"


@pytest.mark.parametrize("content", ["", "clusters: 3", "- a", "clusters: [{cluster: {extensions: [{}]}}]", "a: ["])
def test_a_kubeconfig_without_an_address_is_ignored(content: str) -> None:
    Path("konverge.kubeconfig").write_text(content)
    assert read_dev_address(Path("konverge.kubeconfig")) == ""
