"""The sources of a configuration, their order, and the errors without one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.client import ClientConfig, load_config
from konverge.client.access.credentials import Identity, StaticCredentials
from konverge.client.impersonation import Impersonation
from konverge.errors import ConfigError
from konverge.testing.certificates import Authority


def kubeconfig(path: Path, name: str, **user: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "current-context": name,
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": name, "namespace": f"ns-{name}"}},
            {"name": "spare", "context": {"cluster": name}},
        ],
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example"}}],
        "users": [{"name": name, "user": user}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


def service_account(directory: Path) -> Path:
    authority = Authority(directory, "cluster")
    authority.ca.cert.rename(directory / "ca.crt")
    (directory / "token").write_text("pod-token\n")
    (directory / "namespace").write_text("pod-namespace")
    return directory


class World:
    """A home directory, a service account and two more files, all of which may be looked at."""

    def __init__(self, root: Path) -> None:
        self.explicit = kubeconfig(root / "explicit", "explicit")
        self.listed = kubeconfig(root / "listed", "listed")
        self.home = kubeconfig(root / "home" / ".kube" / "config", "home")
        self.account = service_account(root / "account")
        self.environ = {
            "KUBECONFIG": str(self.listed),
            "KUBERNETES_SERVICE_HOST": "10.0.0.1",
            "KUBERNETES_SERVICE_PORT": "443",
            "HOME": str(root / "home"),
        }

    def load(self, *without: str, **arguments: Any) -> ClientConfig:
        environ = {name: value for name, value in self.environ.items() if name not in without}
        return load_config(environ=environ, service_account=self.account, **arguments)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_the_order_is_argument_kubeconfig_pod_home(world: World) -> None:
    assert world.load(kubeconfig=world.explicit).server == "https://explicit.example"
    assert world.load().server == "https://listed.example"
    assert world.load("KUBECONFIG").server == "https://10.0.0.1:443"
    assert world.load("KUBECONFIG", "KUBERNETES_SERVICE_HOST").server == "https://home.example"


def test_a_context_is_looked_for_in_files_only(world: World) -> None:
    assert world.load("KUBECONFIG", context="spare").server == "https://home.example"


def test_a_pod_without_a_token_is_passed_over(world: World) -> None:
    (world.account / "token").unlink()

    assert world.load("KUBECONFIG").server == "https://home.example"


def test_listed_files_that_are_all_missing_lead_to_the_pod_but_never_home(world: World) -> None:
    world.environ["KUBECONFIG"] = "/nowhere/a:/nowhere/b"

    assert world.load().server == "https://10.0.0.1:443"
    with pytest.raises(ConfigError, match="are missing or empty: /nowhere/a:/nowhere/b"):
        world.load("KUBERNETES_SERVICE_HOST")


def test_nothing_found_says_every_place_that_was_looked_at(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(environ={"HOME": str(tmp_path)}, service_account=tmp_path / "none")

    message = str(caught.value)
    assert message.startswith("no cluster is configured: KUBECONFIG is not set; not in a pod")
    assert f"{tmp_path}/.kube/config is missing or empty" in message


def test_a_wrong_file_is_an_error_and_not_passed_over(world: World) -> None:
    world.listed.write_text("users: x")

    with pytest.raises(ConfigError, match="expected a list, got a string, at users"):
        world.load()


def test_a_missing_file_that_was_asked_for_is_an_error(world: World) -> None:
    with pytest.raises(ConfigError, match="No such file or directory"):
        world.load(kubeconfig="/nowhere/at/all")


def test_an_argument_may_start_with_a_tilde(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", world.environ["HOME"])

    assert world.load(kubeconfig="~/.kube/config").server == "https://home.example"


def test_context_and_namespace_come_from_argument_then_environment_then_file(world: World) -> None:
    assert world.load().namespace == "ns-listed"
    assert world.load(context="spare").namespace == "default"
    world.environ |= {"KONVERGE_CONTEXT": "spare", "KONVERGE_NAMESPACE": "from-environment"}
    assert world.load().namespace == "from-environment"
    assert world.load().origin == f"context spare of kubeconfig {world.listed}"
    config = world.load(context="listed", namespace="from-argument")
    assert (config.namespace, config.origin) == ("from-argument", f"context listed of kubeconfig {world.listed}")


def test_an_override_that_is_no_namespace_says_where_it_comes_from(world: World) -> None:
    with pytest.raises(ConfigError, match=r"^argument namespace: expected the name of a namespace"):
        world.load(namespace="../x")
    world.environ["KONVERGE_NAMESPACE"] = "A"
    with pytest.raises(ConfigError, match=r"^environment variable KONVERGE_NAMESPACE: expected"):
        world.load()


@pytest.mark.parametrize("value", ["soon", "0", "-1", "nan", "1e9"])
def test_a_timeout_of_exec_plugins_that_is_no_number_of_seconds_is_refused(tmp_path: Path, value: str) -> None:
    file = tmp_path / "exec.yaml"
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "aws", "interactiveMode": "Never"}
    user = {"name": "u", "user": {"exec": plugin}}
    cluster = {"name": "c", "cluster": {"server": "https://exec.example"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    file.write_text(
        yaml.safe_dump({"clusters": [cluster], "users": [user], "contexts": [context], "current-context": "x"})
    )

    assert load_config(kubeconfig=file, environ={"KONVERGE_EXEC_TIMEOUT": "30"}).server == "https://exec.example"
    with pytest.raises(ConfigError, match=r"^environment variable KONVERGE_EXEC_TIMEOUT: expected a number of seconds"):
        load_config(kubeconfig=file, environ={"KONVERGE_EXEC_TIMEOUT": value})


def test_a_service_account_has_its_namespace_unless_the_pod_says_another(world: World) -> None:
    assert world.load("KUBECONFIG").namespace == "pod-namespace"
    world.environ["POD_NAMESPACE"] = "downward"
    assert world.load("KUBECONFIG").namespace == "downward"
    assert world.load("KUBECONFIG", namespace="mine").namespace == "mine"


def test_no_credentials_are_sent_to_a_plain_http_server(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", "one", token="t", **{"as": "somebody"})
    path.write_text(path.read_text().replace("https://", "http://"))

    config = load_config(kubeconfig=path, environ={})

    assert asyncio.run(config.credentials.identity()) == Identity()
    assert config.ssl_context() is None
    assert config.impersonation == Impersonation("somebody")


def test_a_config_made_by_hand_sends_no_credentials_over_plain_http_either() -> None:
    credentials = StaticCredentials(Identity("Bearer t"))

    plain = ClientConfig(server="http://127.0.0.1:8080", credentials=credentials)
    encrypted = ClientConfig(server="https://127.0.0.1:8443/", credentials=credentials)

    assert asyncio.run(plain.credentials.identity()) == Identity()
    assert asyncio.run(encrypted.credentials.identity()) == Identity("Bearer t")
    assert encrypted.server == "https://127.0.0.1:8443"


@pytest.mark.parametrize(
    "wrong",
    [{"server": "https://"}, {"server": "https://a", "namespace": "A"}, {"server": "https://a", "proxy": "b"}],
)
def test_a_config_made_by_hand_is_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"^client config: "):
        ClientConfig(**wrong)


def test_the_proxy_is_the_files_then_the_environments(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", "one")
    environ = {"HTTPS_PROXY": "proxy.example:3128", "NO_PROXY": "other.example"}

    assert load_config(kubeconfig=path, environ=environ).proxy == "http://proxy.example:3128"
    path.write_text(path.read_text().replace("server:", "proxy-url: socks5://u:p@here:1080\n    server:"))
    config = load_config(kubeconfig=path, environ=environ)
    assert (config.proxy, config.proxy_for_display) == ("socks5://u:p@here:1080", "socks5://***@here:1080")


def test_the_user_agent_names_us() -> None:
    assert ClientConfig(server="https://a").user_agent.startswith("konverge/")


def test_reading_a_configuration_does_not_load_the_http_library() -> None:
    code = "import sys, konverge.client.access.config; sys.exit('aiohttp' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
