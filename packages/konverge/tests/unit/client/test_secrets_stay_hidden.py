"""No secret of a configuration appears where it could be read: not in a repr, not in an error, not in a log."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.client import ClientConfig, load_config
from konverge.client.access.credentials import Identity, StaticCredentials, basic
from konverge.client.access.kubeconfig import read_kubeconfig
from konverge.client.access.tls import CertificatePair, Tls
from konverge.errors import ConfigError
from konverge.testing.certificates import Authority

SECRET = "c4n4ry-5ecret"
# The last is how every private key of this kind starts, behind its first line.
HIDDEN = (SECRET, base64.b64encode(SECRET.encode()).decode()[:16], "MIGHAgEAMBMGByqGSM49")


def kubeconfig(directory: Path, user: dict[str, Any], **cluster: Any) -> Path:
    content = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://example", **cluster}}],
        "users": [{"name": "c", "user": user}],
    }
    path = directory / "config"
    path.write_text(yaml.safe_dump(content))
    return path


def load(path: Path) -> ClientConfig:
    return load_config(kubeconfig=path, environ={"PATH": os.environ["PATH"]})


def assert_hidden(text: str) -> None:
    for hidden in HIDDEN:
        assert hidden not in text


def everything_within(value: object, seen: set[int]) -> Iterator[object]:
    """Yield a value and all that hangs on it, as a debugger or an error reporter would walk it."""
    if id(value) in seen or isinstance(value, str | bytes | type) or callable(value):
        return
    seen.add(id(value))
    yield value
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    inner = [*getattr(value, "__dict__", {}).values(), *(getattr(value, name, None) for name in slots)]
    for child in inner:
        if type(child).__module__.startswith("konverge."):
            yield from everything_within(child, seen)


def plugin(directory: Path, output: str) -> dict[str, Any]:
    program = directory / "plugin"
    program.write_text(f"#!/bin/sh\necho 'said {SECRET}' >&2\nprintf %s '{output}'\n")
    program.chmod(0o700)
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "./plugin",
            "args": [SECRET],
            "env": [{"name": "PASSWORD", "value": SECRET}],
            "interactiveMode": "Never",
            "provideClusterInfo": True,
        }
    }


def users(directory: Path) -> dict[str, dict[str, Any]]:
    pair = Authority(directory / "authority", "test").sign("me", file="me")
    data = {
        name: base64.b64encode(path.read_bytes()).decode() for name, path in (("cert", pair.cert), ("key", pair.key))
    }
    (directory / "token").write_text(SECRET)
    good = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": SECRET}}
    return {
        "token": {"token": SECRET},
        "token file": {"tokenFile": "token"},
        "basic": {"username": "me", "password": SECRET},
        "certificate": {"client-certificate-data": data["cert"], "client-key-data": data["key"]},
        "plugin": plugin(directory, json.dumps(good)),
    }


@pytest.mark.parametrize("kind", ["token", "token file", "basic", "certificate", "plugin"])
def test_nothing_in_a_configuration_shows_a_secret(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    path = kubeconfig(tmp_path, users(tmp_path)[kind], **{"proxy-url": f"http://me:{SECRET}@proxy:3128"})
    config = load(path)
    identity = asyncio.run(config.credentials.identity(), debug=True)
    asyncio.run(config.credentials.renew(identity), debug=True)
    config.ssl_context(identity)
    choice = read_kubeconfig([path]).resolve()

    assert identity != Identity()
    for part in (config, identity, choice, choice.user, choice.user and choice.user.value, choice.cluster.value):
        for inner in everything_within(part, set()):
            assert_hidden(f"{inner!r} {inner}")
    assert_hidden(config.proxy_for_display or "")
    assert_hidden(caplog.text)
    assert (SECRET in capfd.readouterr().err) == (kind == "plugin")  # its standard error is its own to fill


def test_values_created_by_hand_show_no_secret() -> None:
    pair = CertificatePair(b"cert", f"PRIVATE KEY {SECRET}".encode())
    identity = Identity(basic("me", SECRET), pair)
    config = ClientConfig(
        server="https://example",
        credentials=StaticCredentials(identity),
        tls=Tls(ca=SECRET.encode()),
        proxy=f"http://{SECRET}@proxy",
    )

    for part in (pair, identity, config):
        assert_hidden(f"{part!r} {part}")


WRONG_USERS: dict[str, dict[str, Any]] = {
    "a token with a space": {"token": f"{SECRET} x"},
    "a token and a password": {"token": SECRET, "username": "me", "password": SECRET},
    "a token that is a list": {"token": [SECRET]},
    "a password that is a mapping": {"password": {SECRET: SECRET}},
    "a token where a file is due": {"tokenFile": f"eyJhbGciOiJSUzI1NiJ9.{SECRET}"},
    "a long token where a file is due": {"tokenFile": SECRET * 20},
    "a key where a file is due": {"client-certificate": "me.crt", "client-key": f"-----BEGIN\n{SECRET}"},
    "a key that is not base64": {"client-certificate-data": "eA==", "client-key-data": f"{SECRET}!"},
    "a key that is not PEM": {"client-certificate": "me.crt", "client-key": "garbage"},
    "an unfit key": {"client-certificate": "me.crt", "client-key": "you.key"},
    "a name with a line break": {"as": f"{SECRET}\n"},
    "an auth provider": {"auth-provider": {"name": "gcp", "config": {"access-token": SECRET}}},
    "a plugin without version": {"exec": {"command": "x", "args": [SECRET]}},
    "a plugin with wrong arguments": {"exec": {"command": "x", "args": {SECRET: SECRET}}},
}


@pytest.mark.parametrize("kind", WRONG_USERS)
def test_no_error_about_a_user_shows_a_secret(tmp_path: Path, kind: str) -> None:
    authority = Authority(tmp_path, "test")
    authority.sign("me", file="me")
    authority.sign("you", file="you")
    (tmp_path / "garbage").write_text(SECRET)

    assert_hidden(failure_of(kubeconfig(tmp_path, WRONG_USERS[kind])))


@pytest.mark.parametrize(
    "cluster",
    [
        {"server": f"https://me:{SECRET}@example"},
        {"server": f"https://me:{SECRET}@:x"},
        {"proxy-url": f"ftp://me:{SECRET}@proxy"},
        {"proxy-url": f"http://me:{SECRET}@:0"},
        {"certificate-authority-data": SECRET},
    ],
)
def test_no_error_about_a_cluster_shows_a_secret(tmp_path: Path, cluster: dict[str, Any]) -> None:
    assert_hidden(failure_of(kubeconfig(tmp_path, {}, **cluster)))


@pytest.mark.parametrize(
    "text",
    [
        f"users:\n- user:\n    token: *{SECRET}",
        f"users: [{{user: {{token: !{SECRET} x}}}}]",
        f"users: [{{user: {{token: !!int {SECRET}}}}}]",
        f"users: [{{user: {{token: !!bool {SECRET}}}}}]",
        f"users: [{{user: {{token: @{SECRET}}}}}]",
        f"users: [{{user: {{token: '{SECRET}",
        f"token: {SECRET}: {SECRET}",
        f"users: {SECRET}",
        f"users: [{{user: {{? [{SECRET}] : {SECRET}}}}}]",
        SECRET,
    ],
)
def test_no_error_about_yaml_shows_a_secret(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)

    assert_hidden(failure_of(path))


@pytest.mark.parametrize(
    "output",
    [
        SECRET,
        json.dumps({"status": {"token": SECRET}}),
        json.dumps({"apiVersion": SECRET, "kind": "ExecCredential", "status": {"token": SECRET}}),
        json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": SECRET, "status": {"token": SECRET}}),
        *(
            json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status})
            for status in (
                [SECRET],
                {"token": [SECRET]},
                {"token": f"{SECRET} x"},
                {"clientKeyData": SECRET},
                {"clientKeyData": SECRET, "clientCertificateData": SECRET},
                {"token": SECRET, "expirationTimestamp": SECRET},
            )
        ),
    ],
)
def test_no_error_about_a_plugin_shows_a_secret(tmp_path: Path, output: str) -> None:
    config = load(kubeconfig(tmp_path, plugin(tmp_path, output)))

    with pytest.raises(ConfigError) as caught:
        asyncio.run(config.credentials.identity())

    assert_hidden("".join(traceback.format_exception(caught.value)))


def failure_of(path: Path) -> str:
    """Return all that a log would show of the error: messages, causes, contexts."""
    with pytest.raises(ConfigError) as caught:
        load(path)
    return "".join(traceback.format_exception(caught.value))
