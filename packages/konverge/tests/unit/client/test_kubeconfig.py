"""kubeconfig files: which entry wins, how paths are resolved, which context is used."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.client import ClientConfig, load_config
from konverge.client.access.documents import parse_document
from konverge.client.access.kubeconfig import read_kubeconfig
from konverge.client.access.locations import Location
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


# merging


def test_the_first_file_wins_whole_entries_and_the_current_context(tmp_path: Path) -> None:
    first = document(name="one")
    first["users"] = [{"name": "shared", "user": {"username": "first"}}]
    second = document(name="two")
    second["users"] = [{"name": "shared", "user": {"username": "second", "password": "lost"}}]
    paths = [write(tmp_path / "1", first), write(tmp_path / "2", second)]

    merged = read_kubeconfig(paths)

    assert merged.current_context == "one"
    assert sorted(merged.contexts) == sorted(merged.clusters) == ["one", "two"]
    assert merged.users["shared"].value.username == "first"
    assert merged.users["shared"].value.password is None


def test_a_file_without_a_current_context_leaves_it_to_the_next(tmp_path: Path) -> None:
    silent = document(name="one")
    del silent["current-context"]

    assert (
        read_kubeconfig([write(tmp_path / "1", silent), write(tmp_path / "2", document(name="two"))]).current_context
        == "two"
    )


def test_listed_files_that_are_missing_or_empty_are_skipped(tmp_path: Path) -> None:
    listed = [tmp_path / "missing", write(tmp_path / "empty", ""), write(tmp_path / "comment", "# nothing\n")]

    assert read_kubeconfig(listed).empty
    assert read_kubeconfig([*listed, write(tmp_path / "real", document())]).current_context == "one"


def test_a_context_may_join_entries_of_different_files(tmp_path: Path) -> None:
    contexts = {"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "one", "user": "two"}}]}
    paths = [
        write(tmp_path / name, content)
        for name, content in {
            "contexts": contexts,
            "one": document(name="one"),
            "two": document(name="two", user={"username": "u"}),
        }.items()
    ]

    choice = read_kubeconfig(paths).resolve()

    assert choice.cluster.value.server == "https://one.example:6443"
    assert choice.user is not None
    assert choice.user.value.username == "u"


def test_paths_are_relative_to_the_file_that_they_stand_in(tmp_path: Path) -> None:
    write(tmp_path / "a" / "secret" / "token", "from-a\n")
    write(tmp_path / "b" / "secret" / "token", "from-b\n")
    a = write(tmp_path / "a" / "config", document(user={"tokenFile": "secret/token"}))
    b = write(tmp_path / "b" / "config", document(name="two", user={"tokenFile": "../b/./secret/token"}))

    merged = read_kubeconfig([a, b])

    for name in ("one", "two"):
        entry = merged.users[name]
        assert (
            entry.path("tokenFile", entry.value.token_file or "").read_text()
            == f"from-{'a' if name == 'one' else 'b'}\n"
        )


def test_a_relative_kubeconfig_has_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "config", document(user={"tokenFile": "token"}))
    monkeypatch.chdir(tmp_path)

    assert read_kubeconfig(["config"]).users["one"].path("tokenFile", "token") == tmp_path / "token"


def test_a_tilde_is_a_plain_character_as_in_kubectl(tmp_path: Path) -> None:
    entry = read_kubeconfig([write(tmp_path / "config", document())]).users["one"]

    assert entry.path("tokenFile", "~/token") == tmp_path / "~" / "token"


# choosing


def test_an_argument_chooses_the_context(tmp_path: Path) -> None:
    both = document(name="one")
    for section, entries in document(name="two").items():
        if isinstance(entries, list):
            both[section] += entries

    assert loaded(write(tmp_path / "config", both), context="two").server == "https://two.example:6443"


def test_a_context_without_a_user_is_anonymous(tmp_path: Path) -> None:
    content = document()
    del content["contexts"][0]["context"]["user"]

    assert read_kubeconfig([write(tmp_path / "config", content)]).resolve().user is None


def test_unknown_fields_and_nulls_are_as_good_as_absent(tmp_path: Path) -> None:
    content = document(user={"token": None, "Token": 5, "tokn": ["x"]}, cluster={"proxy-url": None})
    content["preferences"] = None
    content["extensions"] = [1, 2]
    content["users"].append(None)

    assert loaded(write(tmp_path / "config", content)).server == "https://one.example:6443"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_files_are_read_in_the_encodings_that_yaml_knows(tmp_path: Path, encoding: str) -> None:
    content = document(name="größe-雪")
    content["clusters"][0]["cluster"]["server"] = "https://example:1"
    text = yaml.safe_dump(content, allow_unicode=True)

    assert read_kubeconfig([write(tmp_path / "größe", text.encode(encoding))]).current_context == "größe-雪"


def test_anchors_aliases_and_merge_keys_work(tmp_path: Path) -> None:
    text = """
    base: &base {server: "https://one.example:6443", tls-server-name: other}
    current-context: c
    contexts: [{name: c, context: {cluster: k}}]
    clusters: [{name: k, cluster: {<<: *base, tls-server-name: mine}}]
    """
    config = loaded(write(tmp_path / "config", text))

    assert (config.server, config.tls.server_name) == ("https://one.example:6443", "mine")


def test_only_the_first_document_counts(tmp_path: Path) -> None:
    text = yaml.safe_dump(document()) + "---\n" + yaml.safe_dump(document(name="two"))

    assert list(read_kubeconfig([write(tmp_path / "config", text)]).contexts) == ["one"]


def test_dates_and_base_60_numbers_are_strings_as_in_kubectl() -> None:
    text = b"{a: 2020-01-01, b: 1:30, c: =, d: 1, e: 1.5, f: on, g: 017}"

    assert parse_document(text, Location("x")) == {
        "a": "2020-01-01", "b": "1:30", "c": "=", "d": 1, "e": 1.5, "f": True, "g": 15,
    }  # fmt: skip


# servers


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("https://example:6443", "https://example:6443"),
        ("https://example:6443/", "https://example:6443"),
        ("https://example/prefix/?query=1#part", "https://example/prefix"),
        ("https://[2001:db8::1]:6443", "https://[2001:db8::1]:6443"),
        ("HTTPS://example", "https://example"),
        ("example:8080", "http://example:8080"),
        ("localhost", "http://localhost"),
    ],
)
def test_addresses_of_servers_are_brought_to_one_form(tmp_path: Path, written: str, read: str) -> None:
    assert loaded(write(tmp_path / "config", document(cluster={"server": written}))).server == read


def test_what_a_pipe_gives_is_read_as_kubectl_does() -> None:
    reading, writing = os.pipe()
    with open(writing, "wb") as file:
        file.write(yaml.safe_dump(document()).encode())
    with open(reading, "rb"):
        assert read_kubeconfig([f"/dev/fd/{reading}"]).current_context == "one"


def test_data_wins_over_a_file(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "test")
    data = base64.b64encode(authority.ca.cert.read_bytes()).decode()
    path = write(
        tmp_path / "c", document(cluster={"certificate-authority": "missing", "certificate-authority-data": data})
    )

    assert loaded(path).tls.ca() == authority.ca.cert.read_bytes()


def test_base64_may_be_broken_into_lines(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "test")
    data = base64.encodebytes(authority.ca.cert.read_bytes()).decode()

    assert loaded(write(tmp_path / "c", document(cluster={"certificate-authority-data": data}))).tls.ca() is not None
