from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.k8s.core.v1 import Secret
from konverge.objects import ObjectMeta, Unstructured
from konverge.telemetry import (
    ContextLogger,
    HumanFormatter,
    JsonFormatter,
    configure_logging,
    ensure_logging,
    without_secrets,
)

RESERVED = vars(logging.makeLogRecord({}))


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class BrokenRepr:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def json_line(message: str = "Scaled", *args: Any, extra: dict[str, Any] | None = None, **options: Any) -> Any:
    stream = io.StringIO()
    configure_logging("json", "DEBUG", stream=stream)
    logging.getLogger("shop").warning(message, *args, extra=extra, **options)
    (line,) = stream.getvalue().splitlines()
    return json.loads(line)


def human_text(message: str = "Scaled", *args: Any, stream: io.StringIO | None = None, **options: Any) -> str:
    stream = stream or io.StringIO()
    configure_logging("human", "DEBUG", stream=stream)
    logging.getLogger("shop").warning(message, *args, **options)
    return stream.getvalue()


def raised() -> ValueError:
    try:
        raise ValueError("no such size")
    except ValueError as error:
        return error


# JSON


def test_a_record_is_one_json_object_on_one_line() -> None:
    line = json_line("Scaled to %d", 3, extra={"replicas": 3, "ready": True, "share": 0.5, "owner": None})
    moment = line.pop("time")
    assert moment[10] == "T"
    assert moment.endswith("Z")
    assert line == {
        "level": "WARNING",
        "logger": "shop",
        "message": "Scaled to 3",
        "replicas": 3,
        "ready": True,
        "share": 0.5,
        "owner": None,
    }


def test_an_error_has_its_traceback() -> None:
    line = json_line("Failed", exc_info=raised())
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith("ValueError: no such size")


def test_a_field_with_a_reserved_name_hides_nothing() -> None:
    line = json_line("Scaled", extra={"level": "high", "time": "noon", "logger": "x"})
    assert (line["level"], line["level_"], line["time_"], line["logger_"]) == ("WARNING", "high", "noon", "x")


def test_a_message_with_line_breaks_stays_on_one_line() -> None:
    assert json_line("one\ntwo\u2028three")["message"] == "one\ntwo\u2028three"


@pytest.mark.parametrize(
    "odd",
    [
        BrokenRepr(),
        float("nan"),
        float("inf"),
        10**400,
        b"\xff",
        {1: {2}},
        "\ud800",
        "x" * 100_000,
        object(),
        [BrokenRepr()],
        1j,
    ],
    ids=lambda odd: type(odd).__name__,
)
def test_unusual_values_are_shown_and_truncated(odd: Any) -> None:
    line = json_line("Scaled", extra={"odd": odd})
    assert len(str(line["odd"])) <= 1024
    assert len(human_text("Scaled", extra={"odd": odd}).splitlines()) == 1


@pytest.mark.parametrize(
    ("message", "args"), [("Scaled to %d of %d", (3,)), ("Scaled %s", (BrokenRepr(),)), (BrokenRepr(), ())]
)
def test_arguments_that_do_not_match_the_message_do_not_raise(message: Any, args: tuple[Any, ...]) -> None:
    record = logging.makeLogRecord({"msg": message, "args": args})
    expected = message if isinstance(message, str) else "?"
    assert json.loads(JsonFormatter().format(record))["message"].startswith(expected)
    assert expected in HumanFormatter().format(record)


def test_lines_are_bounded() -> None:
    fields = {f"field{number}": "x" * 10_000 for number in range(1_000)}
    assert len(json.dumps(json_line("m" * 1_000_000, extra=fields))) < 100_000
    assert len(human_text("m" * 1_000_000, extra=fields)) < 100_000


@settings(max_examples=100)
@given(
    st.dictionaries(
        st.text(max_size=20).filter(lambda name: name not in RESERVED),
        st.none() | st.integers() | st.floats() | st.text(max_size=50) | st.lists(st.binary(max_size=9), max_size=3),
        max_size=4,
    ),
    st.text(max_size=50),
)
def test_every_record_is_one_line_of_json(fields: dict[str, Any], message: str) -> None:
    record = logging.makeLogRecord({**fields, "msg": message, "name": "shop"})
    text = JsonFormatter().format(record)
    assert len(text.splitlines()) == 1
    assert json.loads(text)["logger"] == "shop"
    human = HumanFormatter().format(record)
    assert human.isprintable()
    human.encode()


# Human


def test_fields_follow_the_message_as_key_and_value() -> None:
    text = human_text("Scaled", extra={"key": "shop/web", "note": "two words", "empty": "", "n": 3})
    assert text.endswith('WARNING shop: Scaled  key=shop/web  note="two words"  empty=""  n=3\n')


def test_a_traceback_follows_the_line() -> None:
    lines = human_text("Failed", exc_info=raised()).splitlines()
    assert lines[0].endswith("shop: Failed")
    assert lines[-1] == "ValueError: no such size"


def test_only_a_terminal_gets_colors() -> None:
    assert "\x1b[" not in human_text()
    assert "\x1b[33mWARNING\x1b[0m" in human_text(stream=FakeTerminal())


def test_a_message_cannot_forge_a_line() -> None:
    assert len(human_text("one\n12:00:00 ERROR shop: two", extra={"a": "x\ny", "b": "\x1b[31m"}).splitlines()) == 1
    assert "\x1b" not in human_text("Scaled", extra={"b": "\x1b[31m"})


# Configuration


def test_a_second_configuration_replaces_the_first_and_keeps_other_handlers() -> None:
    other = logging.NullHandler()
    logging.getLogger().addHandler(other)
    first, second = io.StringIO(), io.StringIO()
    configure_logging("json", stream=first)
    configure_logging("human", stream=second)
    logging.getLogger("shop").info("Scaled")
    assert first.getvalue() == ""
    assert second.getvalue().count("Scaled") == 1
    assert other in logging.getLogger().handlers


def test_records_below_the_level_are_dropped() -> None:
    stream = io.StringIO()
    configure_logging("human", "warning", stream=stream)
    logging.getLogger("shop").info("Scaled")
    assert stream.getvalue() == ""


@pytest.mark.parametrize("wrong", [{"format": "xml"}, {"level": "LOUD"}, {"level": None}, {"level": True}])
def test_an_unknown_format_or_level_is_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises((ValueError, AttributeError), match="log"):
        configure_logging(**wrong)


def run_manager(*setup: str) -> str:
    """Run a script whose manager logs one record and ends; return what it wrote to stderr."""
    script = [
        "import logging",
        *setup,
        "from konverge import Manager",
        "async def log(self):",
        "    logging.getLogger('konverge.manager').info('became leader', extra={'lease': 'shop/web'})",
        "Manager._run = log",
        "Manager(name='shop').run()",
    ]
    finished = subprocess.run(
        [sys.executable, "-c", "\n".join(script)], check=True, capture_output=True, text=True, timeout=60
    )
    return finished.stderr


def test_a_plain_script_that_runs_a_manager_has_readable_logs() -> None:
    (line,) = run_manager().splitlines()
    assert line.endswith("INFO    konverge.manager: became leader  lease=shop/web")


def test_an_application_that_has_configured_logging_keeps_its_own() -> None:
    text = run_manager("logging.basicConfig(level='INFO', format='mine: %(message)s')")
    assert text == "mine: became leader\n"


def test_a_handler_of_the_konverge_logger_is_kept_too() -> None:
    own = logging.NullHandler()
    root, konverge = logging.getLogger(), logging.getLogger("konverge")
    root.handlers.clear()
    konverge.addHandler(own)
    try:
        ensure_logging()
        assert root.handlers == []
    finally:
        konverge.removeHandler(own)


# Context


def test_a_context_logger_adds_its_fields_to_every_record() -> None:
    stream = io.StringIO()
    configure_logging("json", stream=stream)
    log = ContextLogger(kind="WebApp", key="shop/web", reconcile_id="ab-1", attempt=2)
    log.info("Scaled", extra={"replicas": 3, "attempt": 9})
    log.bind(step="service").info("Made")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert {name: first[name] for name in ("kind", "key", "reconcile_id", "attempt", "replicas")} == {
        "kind": "WebApp",
        "key": "shop/web",
        "reconcile_id": "ab-1",
        "attempt": 9,
        "replicas": 3,
    }
    assert (second["step"], second["attempt"]) == ("service", 2)


@pytest.mark.parametrize("name", ["name", "message", "args", "module", "msg", "asctime"])
def test_a_field_that_logging_would_reject_gets_an_underscore(name: str) -> None:
    stream = io.StringIO()
    configure_logging("json", stream=stream)
    ContextLogger(kind="WebApp").info("Scaled", extra={name: "web"})
    line = json.loads(stream.getvalue())
    assert line[f"{name}_"] == "web"
    assert line["message"] == "Scaled"


# Secrets


def test_a_secret_object_shows_its_name_only() -> None:
    secret = Secret(metadata=ObjectMeta(name="db", namespace="shop"), data={"password": b"aHVudGVyMg=="})
    for text in (json.dumps(json_line("Read %s", secret, extra={"obj": secret})), human_text("x", extra={"o": secret})):
        assert "aHVudGVyMg" not in text
        assert "shop/db" in text


UNTYPED = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "db", "namespace": "shop", "annotations": {"last-applied": "aHVudGVyMg=="}},
    "data": {"key": "aHVudGVyMg=="},
}


@pytest.mark.parametrize(
    "value", [UNTYPED, Unstructured(UNTYPED), [UNTYPED], {"items": (UNTYPED,)}, {"object": Unstructured(UNTYPED)}]
)
def test_an_untyped_secret_shows_its_name_only(value: Any) -> None:
    lines = (json.dumps(json_line("read %s", value, extra={"obj": value})), human_text("x", extra={"o": value}))
    for text in lines:
        assert "aHVudGVyMg" not in text
        assert "db" in text
    assert "aHVudGVyMg" not in human_text(f"read {Unstructured(UNTYPED)}")


def test_a_value_in_itself_is_shown() -> None:
    value: dict[str, Any] = {"a": 1}
    value["b"] = value

    assert json_line("read", extra={"o": value})["o"].startswith("{'a': 1")


@pytest.mark.parametrize("value", ["Authorization: Bearer hunter2hunter2", "https://admin:hunter2@db.example.com/x"])
def test_text_in_a_field_that_looks_like_a_secret_is_hidden(value: str) -> None:
    for field in (value, [value], {"header": value}, ValueError(value)):
        assert "hunter2" not in json.dumps(json_line("read", extra={"cause": field}))
        assert "hunter2" not in human_text("read", extra={"cause": field})


@pytest.mark.parametrize("name", ["password", "token", "db_password", "api_key", "Authorization"])
def test_a_field_with_the_name_of_a_secret_is_hidden(name: str) -> None:
    assert json_line("Read", extra={name: "hunter2"})[name] == "<hidden>"
    assert "hunter2" not in human_text("Read", extra={name: "hunter2"})


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer hunter2hunter2",
        "authorization=Basic aHVudGVyMjpodW50ZXIy",
        "cannot reach https://admin:hunter2@db.example.com/x",
        'refused {"password": "hunter2", "user": "a"}',
        "password=hunter2&user=a",
        "DB_PASSWORD='hunter2 hunter2'",
        "api-key: hunter2",
        "token eyJhbGciOiJIUzI1NiJ9hunter2.eyJzdWIiOiJhIn0hunter2.hunter2",
        "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nhunter2 and cut o",
    ],
)
def test_text_that_looks_like_a_secret_is_hidden(text: str) -> None:
    assert "hunter2" not in without_secrets(text)
    assert "aHVudGVyMj" not in without_secrets(text)


@pytest.mark.parametrize(
    "text",
    [
        "apply Deployment shop/web: .spec.replicas is owned by 'hpa' (force=True takes it)",
        "get Secret shop/db: not found",
        "connect https://10.0.0.1:6443/api: refused",
        "expected int, got str, at .spec.secretName of WebApp shop/web",
    ],
)
def test_other_texts_are_unchanged(text: str) -> None:
    assert without_secrets(text) == text


def test_long_texts_are_searched_quickly() -> None:
    for piece in ("a", "password ", "://x", "-----BEGIN PRIVATE KEY-----", "eyJ", 'token"', "Bearer "):
        without_secrets(piece * 20_000)
