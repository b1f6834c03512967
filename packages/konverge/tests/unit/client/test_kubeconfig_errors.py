"""Errors in a kubeconfig: one ConfigError each, with file and field, and never one of the parser."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.client import ClientConfig, load_config
from konverge.client.access.documents import parse_document
from konverge.client.access.kubeconfig import FILE_LIMIT, read_kubeconfig
from konverge.client.access.locations import Location
from konverge.errors import ConfigError
from konverge.testing.certificates import Authority


def document(
    *, name: str = "one", user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example:6443", **(cluster or {})}}],
        "users": [{"name": name, "user": user or {}}],
    }


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def loaded(path: Path, **arguments: Any) -> ClientConfig:
    return load_config(kubeconfig=path, environ={"PATH": os.environ["PATH"]}, **arguments)


def error_message(path: Path, **arguments: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(path, **arguments)
    return str(caught.value)


BOMB = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (letter, letter, b",".join([b"*%c" % (letter - 1)] * 9)) for letter in range(ord("b"), ord("l"))
)
MERGE_BOMB = b"a: &a {x: 1}\n" + b"".join(
    b"%c: &%c {<<: [%s]}\n" % (letter, letter, b",".join([b"*%c" % (letter - 1)] * 9))
    for letter in range(ord("b"), ord("l"))
)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "it is empty"),
        (b"   \n# nothing\n", "it is empty"),
        (b"a: [", "not valid YAML at line 2, column 1"),
        (b"users:\n  - a\n b: c", "not valid YAML at line 3"),
        (b"\ttoken: x", "not valid YAML at line 1, column 1"),
        (b"a: \xff\xfe", "not valid YAML: it contains bytes that are not text"),
        (b"a: \x00", "not valid YAML: it contains bytes that are not text"),
        (b"users: *nobody", "not valid YAML at line 1, column 8: found undefined alias"),
        (b"users: !!python/object:os.system {}", "a value has an unsupported type"),
        (b"users: !secret {}", "a value has an unsupported type"),
        (b"users: !!int x", "a value does not match its tag"),
        (b"users: !!bool x", "a value does not match its tag"),
        (b"users: !!timestamp x", "a value does not match its tag"),
        (b"users: " + b"9" * 5000, "a value does not match its tag"),
        (b"? [a]\n: b", "a value has an unsupported type"),
        (b"users: &a [*a]", "an alias refers to a node that contains it"),
        (b"[" * 100_000, "nested deeper than 64 levels"),
        (b"{a: " * 100_000, "nested deeper than 64 levels"),
        (BOMB, "it has more than 500000 values with all aliases expanded"),
        (MERGE_BOMB, "it has more than 500000 values with all aliases expanded"),
        (b"- a\n", "expected a mapping, got a list"),
        (b"just words\n", "expected a mapping, got a string"),
        (b"42\n", "expected a mapping, got a number"),
        (b"apiVersion: v2\nkind: Config", "expected apiVersion v1 and kind Config"),
        (b"apiVersion: v1\nkind: Secret", "expected apiVersion v1 and kind Config"),
        (b"users: x", "expected a list, got a string, at users"),
        (b"users: {a: b}", "expected a list, got a mapping, at users"),
        (b"users: [{name: a}, {name: b, user: [1]}]", "expected a mapping, got a list, at users[1].user"),
        (
            b"users: [{name: a, user: {token: 123}}]",
            "expected a string, got a number, at users[0].user.token (put it in quotes)",
        ),
        (
            b"users: [{name: a, user: {token: yes}}]",
            "expected a string, got true or false, at users[0].user.token (put it in quotes)",
        ),
        (b"users: [{name: a, user: {token: [x]}}]", "expected a string, got a list, at users[0].user.token"),
        (b"users: [{name: a, user: {token: !!binary eA==}}]", "expected a string, got bytes, at users[0].user.token"),
        (
            b"users: [{name: a, user: {as-user-extra: {k: [1]}}}]",
            "got a number, at users[0].user.as-user-extra[...][0]",
        ),
        (
            b"users: [{name: a, user: {as-user-extra: {1: [a]}}}]",
            "expected a string as key, got a number, at users[0].user.as-user-extra",
        ),
        (b"users: [{name: a, user: {exec: {args: x}}}]", "expected a list, got a string, at users[0].user.exec.args"),
        (
            b"users: [{name: a, user: {exec: {env: [x]}}}]",
            "expected a mapping, got a string, at users[0].user.exec.env[0]",
        ),
        (
            b"clusters: [{name: a, cluster: {insecure-skip-tls-verify: 'true'}}]",
            "expected true or false, got a string, at clusters[0].cluster.insecure-skip-tls-verify",
        ),
        (b"users: [{name: a}, {name: a}]", "the name 'a' occurs twice, at users[1].name"),
        (b"users: [{name: a}]", "no context is set, at current-context (choose one of: none)"),
        (b"contexts: [{name: b}, {name: a}]", "no context is set, at current-context (choose one of: a, b)"),
        (
            b"current-context: zz\ncontexts: [{name: b}, {name: a}]",
            "there is no context 'zz', at current-context (choose one of: a, b)",
        ),
        (
            b"current-context: a\ncontexts: [{name: a}]",
            "no cluster is set, at contexts[0].context.cluster (choose one of: none)",
        ),
        (
            b"current-context: a\ncontexts: [{name: a, context: {cluster: k}}]\nclusters: [{name: z}]",
            "there is no cluster 'k', at contexts[0].context.cluster (choose one of: z)",
        ),
        (
            b"current-context: a\ncontexts: [{name: a, context: {cluster: k, user: u}}]\nclusters: [{name: k}]",
            "there is no user 'u', at contexts[0].context.user (choose one of: none)",
        ),
    ],
)
def test_a_wrong_file_gets_one_clear_error(tmp_path: Path, content: bytes, expected: str) -> None:
    path = write(tmp_path / "config", content)

    message = error_message(path)

    assert message.startswith(f"kubeconfig {path}: ")
    assert expected in message
    assert "\n" not in message


def test_the_error_distinguishes_the_argument_from_current_context(tmp_path: Path) -> None:
    path = write(tmp_path / "config", document())

    assert error_message(path, context="zz") == f"kubeconfig {path}: there is no context 'zz' (choose one of: one)"


@pytest.mark.parametrize(
    ("user", "cluster", "expected"),
    [
        ({}, {"server": None}, "no server is set, at clusters[0].cluster.server"),
        ({}, {"server": "https://"}, "expected the address of a server, at clusters[0].cluster.server"),
        ({}, {"server": "https://a:b"}, "expected the address of a server, at clusters[0].cluster.server"),
        ({}, {"server": "https://a:99999"}, "expected the address of a server"),
        ({}, {"server": "https://[::1"}, "expected the address of a server"),
        ({}, {"server": "https://a b"}, "expected the address of a server"),
        ({}, {"server": "https://a\nb"}, "expected the address of a server"),
        ({}, {"server": "example:1/prefix"}, "expected the address of a server"),
        ({}, {"server": "ftp://example"}, "a server of scheme 'ftp' is not supported"),
        ({}, {"server": "https://me:secret@example"}, "a user or password in the address is not supported"),
        (
            {},
            {"proxy-url": "ftp://example"},
            "a proxy of scheme 'ftp' is not supported, at clusters[0].cluster.proxy-url",
        ),
        ({}, {"proxy-url": "socks5h://example"}, "a proxy of scheme 'socks5h' is not supported"),
        ({}, {"proxy-url": "http://"}, "expected the URL of a proxy"),
        ({}, {"proxy-url": "example:3128"}, "is not supported, at clusters[0].cluster.proxy-url"),
        (
            {},
            {"certificate-authority-data": "a b!"},
            "expected base64, at clusters[0].cluster.certificate-authority-data",
        ),
        (
            {},
            {"certificate-authority-data": "YWJj"},
            "expected PEM certificates, at clusters[0].cluster.certificate-authority-data",
        ),
        (
            {},
            {"certificate-authority": "missing"},
            "missing: No such file or directory, at clusters[0].cluster.certificate-authority",
        ),
        ({}, {"certificate-authority": "."}, "Is a directory, at clusters[0].cluster.certificate-authority"),
        (
            {},
            {"certificate-authority": "garbage"},
            "expected PEM certificates, at clusters[0].cluster.certificate-authority",
        ),
        ({}, {"certificate-authority": "empty"}, "empty is empty, at clusters[0].cluster.certificate-authority"),
        ({}, {"certificate-authority": "nul\0"}, "the path of the file contains a NUL character"),
        (
            {},
            {"certificate-authority": "ca.crt", "insecure-skip-tls-verify": True},
            "a certificate authority and insecure-skip-tls-verify exclude each other",
        ),
        ({"tokenFile": "missing"}, {}, "No such file or directory, at users[0].user.tokenFile"),
        ({"tokenFile": "empty"}, {}, "empty is empty, at users[0].user.tokenFile"),
        ({"tokenFile": "huge"}, {}, "huge is larger than 1024 KiB, at users[0].user.tokenFile"),
        (
            {"tokenFile": "twolines"},
            {},
            "the token has characters that a header cannot contain, at users[0].user.tokenFile",
        ),
        ({"token": "a\n"}, {}, "the token has characters that a header cannot contain, at users[0].user.token"),
        ({"token": "é"}, {}, "the token has characters that a header cannot contain, at users[0].user.token"),
        ({"token": "a", "username": "b"}, {}, "exclude each other, at users[0].user"),
        ({"tokenFile": "a", "password": "b"}, {}, "exclude each other, at users[0].user"),
        (
            {"client-certificate": "client.crt"},
            {},
            "a client certificate needs its key, at users[0].user (client-key or client-key-data)",
        ),
        (
            {"client-certificate": "client.crt", "client-key": "missing"},
            {},
            "No such file or directory, at users[0].user.client-key",
        ),
        (
            {"client-certificate": "client.crt", "client-key": "garbage"},
            {},
            "expected a PEM private key, at users[0].user.client-key",
        ),
        (
            {"client-certificate": "client.crt", "client-key": "other.key"},
            {},
            "the private key does not belong to the client certificate, at users[0].user.client-key",
        ),
        (
            {"client-certificate": "client.crt", "client-key": "encrypted.key"},
            {},
            "the private key is encrypted, at users[0].user.client-key",
        ),
        (
            {"client-certificate": "garbage", "client-key": "client.key"},
            {},
            "expected PEM certificates, at users[0].user.client-certificate",
        ),
        (
            {"client-certificate-data": "*", "client-key": "client.key"},
            {},
            "expected base64, at users[0].user.client-certificate-data",
        ),
        (
            {"client-certificate": "client.crt", "client-key-data": "YWJj"},
            {},
            "expected a PEM private key, at users[0].user.client-key-data",
        ),
        (
            {"client-key": "-----BEGIN PRIVATE KEY-----\nabc", "client-certificate": "client.crt"},
            {},
            "got a value that looks like its content, at users[0].user.client-key",
        ),
        ({"auth-provider": {"name": "gcp"}}, {}, "auth providers are not supported, at users[0].user.auth-provider"),
        ({"as-groups": ["a"]}, {}, "need a user, at users[0].user.as"),
        ({"as-uid": "a"}, {}, "need a user, at users[0].user.as"),
        ({"as-user-extra": {"a": ["b"]}}, {}, "need a user, at users[0].user.as"),
        ({"as": "a\r\nb: c"}, {}, "a header cannot contain a line break, at users[0].user.as"),
        ({"exec": {}}, {}, "no command is set, at users[0].user.exec.command"),
        ({"exec": {"command": "x"}}, {}, "the apiVersion is not supported, at users[0].user.exec.apiVersion"),
        (
            {"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}},
            {},
            "the apiVersion is not supported",
        ),
        (
            {"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1"}},
            {},
            "it is required with v1, at users[0].user.exec.interactiveMode",
        ),
        (
            {"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Sometimes"}},
            {},
            "expected Never, IfAvailable or Always, at users[0].user.exec.interactiveMode",
        ),
        (
            {"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1beta1", "env": [{"value": "x"}]}},
            {},
            "expected the name of an environment variable, at users[0].user.exec.env[0].name",
        ),
    ],
)
def test_a_wrong_setting_is_named_with_its_field(
    tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any], expected: str
) -> None:
    authority = Authority(tmp_path, "test")
    authority.ca.cert.rename(tmp_path / "ca.crt")
    authority.sign("me", file="client")
    authority.sign("you", file="other")
    for name, content in {
        "garbage": "not PEM",
        "empty": " \n",
        "huge": "x" * (2 << 20),
        "twolines": "one\ntwo\n",
        "encrypted.key": "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMII=\n-----END ENCRYPTED PRIVATE KEY-----\n",
    }.items():
        write(tmp_path / name, content)
    path = write(tmp_path / "config", document(user=user, cluster=cluster))

    message = error_message(path)

    assert message.startswith(f"kubeconfig {path}: ")
    assert expected in message
    assert "\n" not in message


def test_a_namespace_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    content = document()
    content["contexts"][0]["context"]["namespace"] = "Not_A_Label"

    assert "expected the name of a namespace, at contexts[0].context.namespace" in error_message(
        write(tmp_path / "c", content)
    )


@pytest.mark.parametrize(
    ("name", "expected"), [("missing", "No such file or directory"), ("folder", "Is a directory"), ("nul\0", "NUL")]
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, expected: str) -> None:
    (tmp_path / "folder").mkdir()

    assert expected in error_message(tmp_path / name)


def test_a_file_that_is_no_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the whole path may be too long for the address of a socket
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")

        assert "No such device or address" in error_message(tmp_path / "socket")


def test_a_symbolic_link_to_itself_is_an_error_and_not_skipped(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")

    with pytest.raises(ConfigError, match="Too many levels of symbolic links"):
        read_kubeconfig([tmp_path / "loop"])


def test_a_huge_file_is_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "config"
    with path.open("wb") as file:
        file.truncate(FILE_LIMIT + 1)

    assert error_message(path) == f"kubeconfig {path}: {path} is larger than 8192 KiB"


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_no_content_whatever_lets_a_parser_error_out(content: bytes) -> None:
    message = ""
    try:
        parse_document(content, Location("file"))
    except ConfigError as error:
        message = str(error)

    assert not message or message.startswith("file: ")


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "user", "cluster", "context", "server", "token", "exec", "command", "users"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(["users", "clusters", "contexts", "current-context"]), json_like))
def test_no_form_whatever_lets_anything_but_a_config_error_out(
    tmp_path_factory: pytest.TempPathFactory, content: dict[str, Any]
) -> None:
    path = write(tmp_path_factory.getbasetemp() / "any-form", content)
    message = ""
    try:
        loaded(path)
    except ConfigError as error:
        message = str(error)

    assert not message or message.startswith(f"kubeconfig {path}: ")
