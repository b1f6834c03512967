"""The vocabulary check finds what it is there for: each rule with a planted violation."""

from __future__ import annotations

import ast

import pytest
from vocabulary import (
    MAX_ENTRIES,
    Entry,
    Name,
    Package,
    Violation,
    WordLists,
    allow,
    bad_start,
    check,
    defined_names,
    docstring_violations,
    lines,
    load_lists,
    metric_names,
    module_names,
    parse_entries,
    prose_pattern,
    prose_violations,
    split_name,
    unknown_words,
)

LISTS = WordLists(
    known=frozenset({"watch", "timeout", "queue", "policy", "key", "hush"}),
    banned={"hush": "idle timeout", "stand_in": "fake", "stand": "status"},
    prose={"hush": "idle timeout", "front door": "top-level API"},
)


def package(*names: str, words: str = "") -> Package:
    """Return a package with these function names in one file, and a words.txt."""
    found = [Name("konverge/queue/keys.py", number, "function", name) for number, name in enumerate(names, 1)]
    return Package(list(parse_entries(words)), found)


def messages(found: list[Violation]) -> list[str]:
    return [violation.message for violation in found]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("watch_timeout", ["watch", "timeout"]),
        ("_WatchTimeout", ["watch", "timeout"]),
        ("HTTPServer", ["http", "server"]),
        ("serviceAccountUIDs", ["service", "account", "uids"]),
        ("OpenAPIv3Document", ["open", "api", "document"]),
        ("sha256_of_k8s", ["sha", "of"]),
        ("KT", ["kt"]),
        ("T", []),
    ],
)
def test_a_name_is_split_into_words_without_digits_and_single_letters(name: str, words: list[str]) -> None:
    assert split_name(name) == words


def test_names_of_known_words_and_their_plurals_are_no_violation() -> None:
    assert check(package("watch_timeouts", "policies", "konverge_keys"), LISTS) == []


def test_an_unknown_word_is_reported_with_its_place_and_its_name() -> None:
    found = check(package("watch_queue", "watch_gizmo"), LISTS)

    assert list(lines({"konverge": found}, lambda _: True)) == [
        "packages/konverge/src/konverge/queue/keys.py:2: "
        'function watch_gizmo: "gizmo" is in no word list; use a word of the field'
    ]


def test_a_banned_word_is_reported_even_if_a_word_list_has_it() -> None:
    assert messages(check(package("watch_hush"), LISTS)) == [
        'function watch_hush: "hush" is banned, say idle timeout',
    ]


def test_a_banned_pair_of_words_is_reported_once() -> None:
    lists = WordLists(LISTS.known | {"in"}, LISTS.banned)

    assert messages(check(package("StandIn"), lists)) == ['function StandIn: "stand_in" is banned, say fake']


def test_an_entry_with_a_reason_allows_an_unknown_word_and_its_plural() -> None:
    assert check(package("watch_gizmo", "gizmos", words="# why\n\ngizmo  the vendor calls it so\n"), LISTS) == []


def test_an_entry_without_a_reason_is_a_violation() -> None:
    found = check(package("watch_gizmo", words="gizmo\n"), LISTS)

    assert list(lines({"konverge": found}, lambda _: True)) == ['packages/konverge/words.txt:1: "gizmo" has no reason']


@pytest.mark.parametrize("word", ["gadget", "watch"])
def test_an_entry_that_no_name_needs_is_a_violation(word: str) -> None:
    assert messages(check(package("watch", words=f"{word}  a reason"), LISTS)) == [f'"{word}" is not needed, remove it']


def test_a_package_has_a_limited_number_of_entries() -> None:
    odd = ["x" * length for length in range(2, MAX_ENTRIES + 3)]
    words = "".join(f"{word}  a reason\n" for word in odd)

    assert messages(check(package(*odd, words=words), LISTS)) == ["61 entries, 60 at most"]
    assert check(package(*odd[1:], words=words.split("\n", 1)[1]), LISTS) == []


def test_an_entry_cannot_allow_a_banned_word_everywhere() -> None:
    assert messages(check(package("hush", words="hush  a reason"), LISTS)) == [
        '"hush" is banned, say idle timeout; only hush@path can allow it',
        'function hush: "hush" is banned, say idle timeout',
    ]


def test_an_entry_with_a_path_allows_a_banned_word_there_only() -> None:
    assert check(package("hush", words="hush@konverge/queue  a reason"), LISTS) == []
    assert messages(check(package("hush", words="hush@konverge/cache  a reason"), LISTS)) == [
        '"hush" is not needed, remove it',
        'function hush: "hush" is banned, say idle timeout',
    ]


def test_an_entry_is_used_by_the_violation_that_it_allows() -> None:
    entry = Entry(1, "gizmo", "", "a reason")
    violation = Violation("konverge/keys.py", 1, "message", "gizmo", "unknown")

    assert allow([violation], [entry]) == ([], {entry})


SOURCE = '''
class _Held:
    """Held."""

    size: int
    _hidden: int
    plain = 1

    def __init__(self, first: int, *, second: int = 0) -> None:
        self.third = first

    def public(self, *rest: int, **more: int) -> None:
        def inner(unseen: int) -> None: ...

    def _private(self, unseen: int) -> None: ...


if True:
    async def late(_given: int) -> None: ...
'''


def test_classes_public_functions_their_arguments_and_fields_are_checked() -> None:
    found = [(name.role, name.text) for name in defined_names("a.py", ast.parse(SOURCE))]

    assert found == [
        ("class", "_Held"),
        ("field", "size"),
        ("argument", "first"),
        ("argument", "second"),
        ("function", "public"),
        ("argument", "rest"),
        ("argument", "more"),
        ("function", "late"),
        ("argument", "_given"),
    ]


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("konverge/cache/reflector.py", ["reflector"]),
        ("konverge/cache/__init__.py", ["cache"]),
        ("konverge/__main__.py", []),
    ],
)
def test_modules_and_packages_are_checked(path: str, names: list[str]) -> None:
    assert [name.text for name in module_names(path)] == names


def test_metrics_are_found_by_their_prefix_and_by_their_constructor() -> None:
    source = (
        'NAME = "konverge_queue_adds"\nCounter("reconcile_total", "text")\ngauge(f"{prefix}_depth")\nCounter(items)\n'
    )
    source += 'log.info("Some text")\n'

    found = [(name.line, name.text) for name in metric_names("a.py", ast.parse(source))]

    assert sorted(found) == [(1, "konverge_queue_adds"), (2, "reconcile_total"), (3, "__depth")]


@pytest.mark.parametrize(
    "docstring",
    [
        "Give the key.",
        "\n    Gives the key.\n",
        "Tell whether it is.",
        "Say it",
        "Take a key.",
        "Make an object so, by apply.",
    ],
)
def test_a_docstring_that_begins_with_a_vague_verb_is_a_violation(docstring: str) -> None:
    assert bad_start(docstring)


@pytest.mark.parametrize(
    "docstring", ["Return the key.", "Make a copy, so that nobody waits.", "Seed the store.", "", "`x`"]
)
def test_other_docstrings_are_no_violation(docstring: str) -> None:
    assert not bad_start(docstring)


def test_docstrings_of_methods_are_checked() -> None:
    source = 'class Key:\n    """A key."""\n\n    def text(self) -> str:\n        """Give the text."""\n'

    assert [(found.line, found.message) for found in docstring_violations("a.py", ast.parse(source))] == [
        (5, 'docstring "Give the text.": begin with Return')
    ]


def test_banned_phrases_are_found_in_comments_docstrings_and_strings_but_not_in_code() -> None:
    source = (
        '"""Watch.\n\nA hush is long.\n"""\n\nhush = 1  # past the front\n# door\nlog("A hush ended")\nkey = "hush"\n'
    )

    found = prose_violations("a.py", source, LISTS.prose, prose_pattern(LISTS.prose))

    assert sorted((one.line, one.word) for one in found) == [(3, "hush"), (6, "front_door"), (8, "hush")]


def test_words_are_listed_with_the_most_frequent_first() -> None:
    found = check(package("gadget", "gizmo", "hush", "gizmo_key"), LISTS)

    assert [line.split()[:3] for line in unknown_words({"konverge": found})] == [
        ["2", "gizmo", "unknown"],
        ["1", "gadget", "unknown"],
        ["1", "hush", "banned"],
    ]


def test_the_checked_in_lists_know_the_words_of_the_field_and_ban_those_of_the_glossary() -> None:
    lists = load_lists()

    for word in ("reconciler", "informer", "workqueue", "finalizer", "asyncio", "predicate", "lister", "backoff"):
        assert lists.knows(word), word
    assert lists.banned_in(["restless", "mirrors"]).keys() == {"restless", "mirrors"}
    assert not lists.banned_in(["state", "round", "view", "guard", "reconcile"])
    assert "front door" in lists.prose
