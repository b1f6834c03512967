"""kubectl and konverge read the same kubeconfig files and must use the same values."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.client import ClientConfig, load_config
from konverge.client.access.addresses import check_server
from konverge.client.access.credentials import basic
from konverge.client.access.locations import Location
from konverge.errors import ConfigError, ControlPlaneError
from konverge.testing.binaries import find_binaries
from konverge.testing.certificates import Authority

pytestmark = pytest.mark.control_plane

# Nothing listens there: whoever gets as far as connecting has accepted the configuration.
SERVER = "https://127.0.0.1:1"


@pytest.fixture(scope="module")
def kubectl() -> str:
    """The kubectl of the version that is tested, else the one that is installed."""
    try:
        return str(find_binaries(("kubectl",)) / "kubectl")
    except ControlPlaneError:
        installed = shutil.which("kubectl")
        return installed or pytest.skip("there is no kubectl to compare with")


@dataclass
class Desk:
    """A directory with certificates and kubeconfig files, and both readers of them."""

    kubectl: str
    directory: Path
    environ: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        authority = Authority(self.directory / "pki", "test")
        authority.sign("me", file="me")
        (self.directory / "token").write_text("from-file\n")
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(self.directory / "home")}

    def write(self, name: str, content: dict[str, Any]) -> Path:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(content))
        return path

    def filled(self, content: Any) -> Any:
        """Replace each "@file" by the content of the file in base64."""
        if isinstance(content, dict):
            return {name: self.filled(value) for name, value in content.items()}
        if isinstance(content, list):
            return [self.filled(value) for value in content]
        if isinstance(content, str) and content.startswith("@"):
            return base64.b64encode((self.directory / content[1:]).read_bytes()).decode()
        return content

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.kubectl, *arguments],
            env=self.environ,
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=30,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    def seen_by_kubectl(self, *arguments: str) -> dict[str, Any]:
        done = self.run("config", "view", "--minify", "--flatten", "--raw", "--output=json", *arguments)
        assert done.returncode == 0, done.stderr
        view: dict[str, Any] = json.loads(done.stdout)
        return view

    def accepted_by_kubectl(self, path: Path) -> bool:
        done = self.run("get", "--raw", "/version", "--kubeconfig", str(path), "--request-timeout=5s")
        return "refused - did you specify" in done.stderr or "Please enter Username" in done.stdout

    def load(self, **arguments: Any) -> ClientConfig:
        return load_config(environ=self.environ, **arguments)


@pytest.fixture
def desk(kubectl: str, tmp_path: Path) -> Desk:
    return Desk(kubectl, tmp_path)


def document(
    name: str = "one", *, user: Any = None, cluster: Any = None, namespace: str = "shop", **rest: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}],
        "clusters": [{"name": name, "cluster": {"server": SERVER, **(cluster or {})}}],
        "users": [{"name": name, "user": user or {}}],
        **rest,
    }


def assert_same(config: ClientConfig, view: dict[str, Any], *, beside: Path) -> None:
    """Compare all that kubectl shows of a context with what konverge uses; token files are shown as written."""
    (context,), (cluster,), (user,) = view["contexts"], view["clusters"], view["users"]
    cluster, user = cluster["cluster"], user["user"]
    assert config.namespace == context["context"].get("namespace", "default")
    assert config.server == check_server(cluster["server"], Location("kubectl"))
    assert config.tls.server_name == cluster.get("tls-server-name")
    assert config.tls.insecure == cluster.get("insecure-skip-tls-verify", False)
    assert config.tls.ca() == decoded(cluster.get("certificate-authority-data"))
    assert config.proxy == cluster.get("proxy-url")
    assert config.disable_compression == cluster.get("disable-compression", False)
    identity = asyncio.run(config.credentials.identity())
    assert identity.authorization == header(user, beside)
    pair = identity.certificate
    assert (pair and pair.certificate) == decoded(user.get("client-certificate-data"))
    assert (pair and pair.key) == decoded(user.get("client-key-data"))
    act_as = config.impersonation
    assert (act_as.user if act_as else None) == user.get("as")
    assert (list(act_as.groups) if act_as else []) == user.get("as-groups", [])
    assert (act_as.uid if act_as else "") == user.get("as-uid", "")
    assert ({k: list(v) for k, v in act_as.extra.items()} if act_as else {}) == user.get("as-user-extra", {})


def decoded(data: str | None) -> bytes | None:
    return base64.b64decode(data) if data else None


def header(user: dict[str, Any], beside: Path) -> str | None:
    if "tokenFile" in user:
        return f"Bearer {(beside / user['tokenFile']).read_text().strip()}"
    if "token" in user:
        return f"Bearer {user['token']}"
    return basic(user["username"], user["password"]) if "username" in user else None


# "@file" stands for the content of the file in base64.
SET_UPS = {
    "bare": document(),
    "token": document(user={"token": "inline"}),
    "token file": document(user={"tokenFile": "token"}),
    "token and token file": document(user={"token": "inline", "tokenFile": "./token"}),
    "basic": document(user={"username": "me", "password": "pass:word é"}),
    "files": document(
        user={"client-certificate": "pki/me.crt", "client-key": "./pki/me.key"},
        cluster={"certificate-authority": "./pki/../pki/test-ca.crt"},
    ),
    "data": document(
        user={"client-certificate-data": "@pki/me.crt", "client-key-data": "@pki/me.key"},
        cluster={"certificate-authority-data": "@pki/test-ca.crt"},
    ),
    "data and files": document(
        user={"client-certificate-data": "@pki/me.crt", "client-key": "pki/me.key", "token": "both"}
    ),
    "cluster options": document(
        cluster={
            "server": "https://[::1]:6443/prefix/",
            "insecure-skip-tls-verify": True,
            "tls-server-name": "other",
            "proxy-url": "socks5://me:pw@127.0.0.1:2",
            "disable-compression": True,
        }
    ),
    "impersonation": document(
        user={"token": "t", "as": "jane", "as-uid": "1", "as-groups": ["b", "a"], "as-user-extra": {"k": ["v", "w"]}}
    ),
    "nulls and unknown fields": document(
        user={"token": None, "Token": 1, "other": [1]}, preferences=None, extensions=None, more={"a": 1}
    ),
    "names in every script": document("größe 雪 @ / :", user={"token": "t"}),
    "dates and times as names": document("2020-01-01", user={"token": "2020-01-01"}),
}


@pytest.mark.parametrize("name", SET_UPS)
def test_what_kubectl_shows_is_what_is_used(desk: Desk, name: str) -> None:
    path = desk.write("config", desk.filled(SET_UPS[name]))

    assert_same(desk.load(kubeconfig=path), desk.seen_by_kubectl("--kubeconfig", str(path)), beside=desk.directory)


def test_a_list_of_files_is_merged_in_the_same_way(desk: Desk) -> None:
    first = document("one", user={"token": "first"})
    first["users"].append({"name": "shared", "user": {"token": "shared-first"}})
    second = document("two", user={"tokenFile": "token"}, cluster={"certificate-authority": "../pki/test-ca.crt"})
    second["users"].append({"name": "shared", "user": {"username": "shared", "password": "second"}})
    second["contexts"].append({"name": "joined", "context": {"cluster": "one", "user": "shared"}})
    desk.write("a/config", first)
    desk.write("b/config", second)
    (desk.directory / "b" / "token").write_text("beside-its-config")
    desk.environ["KUBECONFIG"] = ":".join(
        ["missing", str(desk.directory / "a/config"), "", str(desk.directory / "b/config")]
    )

    beside = desk.directory / "b"
    assert_same(desk.load(), desk.seen_by_kubectl(), beside=beside)
    for context in ("one", "two", "joined"):
        assert_same(desk.load(context=context), desk.seen_by_kubectl("--context", context), beside=beside)


def test_the_file_in_the_home_directory_is_found_in_the_same_way(desk: Desk) -> None:
    desk.write("home/.kube/config", document(user={"token": "at-home"}))

    assert_same(desk.load(), desk.seen_by_kubectl(), beside=desk.directory)


def test_an_exec_plugin_gets_the_same_cluster(desk: Desk) -> None:
    plugin = desk.directory / "plugins" / "dump"
    plugin.parent.mkdir()
    answer = {"apiVersion": V1, "kind": "ExecCredential", "status": {"token": "t"}}
    plugin.write_text(
        "#!/bin/sh\n"
        'printf "%s\\n" "$(echo "$KUBERNETES_EXEC_INFO")" "$0" "$*" "$A" "$HOME" >> "$LOG"\n'
        f"echo '{json.dumps(answer)}'\n"
    )
    plugin.chmod(0o700)
    extension = {"audience": "é<b>&", "count": 1, "f": 1.5, "l": [True, None], "m": {"a": {}}}
    for provided in (True, False):
        spec = {
            "apiVersion": V1,
            "command": "../plugins/dump",
            "args": ["a b", "c"],
            "env": [{"name": "A", "value": "é"}, {"name": "LOG", "value": str(desk.directory / "log")}],
            "interactiveMode": "IfAvailable",
            "provideClusterInfo": provided,
        }
        cluster = {
            "server": f"{SERVER}/prefix/?query=1#part",
            "certificate-authority": "../pki/test-ca.crt",
            "tls-server-name": "other",
            "disable-compression": True,
            "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": extension}],
        }
        path = desk.write("configs/config", document(user={"exec": spec}, cluster=cluster))
        log = desk.directory / "log"
        log.unlink(missing_ok=True)

        assert desk.accepted_by_kubectl(path)
        from_kubectl = log.read_text().splitlines()[:5]
        log.unlink()
        asyncio.run(desk.load(kubeconfig=path).credentials.identity())
        from_konverge = log.read_text().splitlines()

        assert json.loads(from_konverge[0]) == json.loads(from_kubectl[0])
        assert from_konverge[1:] == from_kubectl[1:]


V1 = "client.authentication.k8s.io/v1"
EXEC = {"apiVersion": V1, "command": "true", "interactiveMode": "Never"}
REFUSED = {
    "a token that is a number": document(user={"token": 1}),
    "a flag that is a string": document(cluster={"insecure-skip-tls-verify": "true"}),
    "users that are a mapping": document(users={}),
    "a version that is not v1": document(apiVersion="v2"),
    "another kind": document(kind="Secret"),
    "a name that comes twice": document(users=[{"name": "one"}, {"name": "one"}]),
    "no such context": document() | {"current-context": "zz"},
    "CA data that is not base64": document(cluster={"certificate-authority-data": "a b"}),
    "CA data that is not PEM": document(user={"token": "t"}, cluster={"certificate-authority-data": "YWJj"}),
    "a CA that is missing": document(cluster={"certificate-authority": "missing"}),
    "a CA and no verification": document(
        user={"token": "t"},
        cluster={"certificate-authority-data": "@pki/test-ca.crt", "insecure-skip-tls-verify": True},
    ),
    "a proxy of an unknown scheme": document(cluster={"proxy-url": "socks5h://proxy"}),
    "a host with a path": document(cluster={"server": "127.0.0.1:1/prefix"}),
    "a server of an unknown scheme": document(cluster={"server": "ftp://127.0.0.1:1"}),
    "a certificate without a key": document(user={"client-certificate": "pki/me.crt"}),
    "a key of another certificate": document(
        user={"client-certificate-data": "@pki/me.crt", "client-key-data": "@pki/test-ca.key"}
    ),
    "a token and a password": document(user={"token": "t", "username": "u", "password": "p"}),
    "a token with a line break": document(user={"token": "t\n"}),
    "a token file that is missing": document(user={"tokenFile": "missing"}),
    "groups without a user": document(user={"as-groups": ["g"]}),
    "an auth provider": document(user={"auth-provider": {"name": "gcp"}}),
    "a plugin without a command": document(user={"exec": {**EXEC, "command": ""}}),
    "a plugin of an old version": document(user={"exec": {**EXEC, "apiVersion": f"{V1}alpha1"}}),
    "a plugin without a mode": document(user={"exec": {**EXEC, "interactiveMode": None}}),
    "a plugin of an unknown mode": document(user={"exec": {**EXEC, "interactiveMode": "Sometimes"}}),
    "a plugin with a nameless variable": document(user={"exec": {**EXEC, "env": [{"value": "x"}]}}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_kubectl_refuses_is_refused(desk: Desk, name: str) -> None:
    path = desk.write("config", desk.filled(REFUSED[name]))

    assert not desk.accepted_by_kubectl(path)
    with pytest.raises(ConfigError):
        desk.load(kubeconfig=path)


ACCEPTED = {
    "no kind and no version": {k: v for k, v in document().items() if k not in ("kind", "apiVersion")},
    "a scheme that is left out": document(user={"token": "t"}, cluster={"server": "127.0.0.1:1"}),
    "a context without a user": document() | {"contexts": [{"name": "one", "context": {"cluster": "one"}}]},
    "entries that are empty": document() | {"users": [{"name": "one", "user": None}, {"name": "two"}]},
    "a key without a certificate": document(user={"token": "t", "client-key": "missing"}),
    "a plugin that a token makes unnecessary": document(user={"token": "t", "exec": {**EXEC, "command": "missing"}}),
    "a token that replaces a missing file": document(user={"token": "t", "tokenFile": "missing"}),
    "a CA that plain http does not need": document(
        cluster={
            "server": "http://127.0.0.1:1",
            "certificate-authority-data": "@pki/test-ca.crt",
            "insecure-skip-tls-verify": True,
        }
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_kubectl_accepts_is_accepted(desk: Desk, name: str) -> None:
    path = desk.write("config", desk.filled(ACCEPTED[name]))

    assert desk.accepted_by_kubectl(path)
    desk.load(kubeconfig=path)
