"""Check that names and texts use the field's words: `make check` runs it.

Names of modules, classes, public functions, arguments, fields and metrics are split into words. A word must be

- in a word list of `tools/words/`: the words of the API names of Kubernetes, controller-runtime, client-go,
  kube-rs and Python's standard library (`collect.py` writes them), or
- in `packages/<package>/words.txt` with a reason: `word  reason`.

A word of `banned.txt` (the glossary's "not" column) is a violation even if a word list has it, unless words.txt allows
it for some files: `word@konverge/queue  reason`. The part after @ is the start of a path below `src`.

Docstrings must not begin with the verbs in `DOCSTRING_STARTS`. Docstrings, comments and strings must not contain the
phrases of `banned_prose.txt`. A words.txt entry that nothing needs is a violation too.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parent.parent
LISTS = Path(__file__).parent / "words"
SOURCES = ("kubernetes", "controller_runtime", "client_go", "kube_rs", "python")

MAX_ENTRIES = 60
PROJECT_WORDS = frozenset({"konverge"})
GENERATED = frozenset({"k8s"})
"""Folders whose names come from the Kubernetes API description."""

DOCSTRING_STARTS = {
    "give": "Return",
    "tell": "Report whether, Return",
    "say": "Report whether, Return",
    "take": "the verb for what happens",
    "have": "the verb for what happens",
    "see": "the verb for what happens",
}

_PART = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_METRIC = re.compile(r"(?:konverge|controller_runtime|workqueue|rest_client|leader_election)_[a-z_]+")
_METRIC_CALL = re.compile(r"(?:counter|gauge|histogram|summary|info)(?:metricfamily)?", re.IGNORECASE)
_METRIC_HINT = re.compile(rf"prometheus_client|[\"']{_METRIC.pattern}")
_MAKE_SO = re.compile(r"make\b[^.;:]*\bso\b(?! that)", re.IGNORECASE)

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Name:
    """A name that a source file defines. `path` is relative to the package's `src`."""

    path: str
    line: int
    role: str
    text: str


@dataclass(frozen=True)
class Violation:
    """One finding. `word` is the word or phrase that words.txt can allow, or empty."""

    path: str
    line: int
    message: str
    word: str = ""
    kind: str = ""


@dataclass(frozen=True)
class WordLists:
    """The known words, and the banned words and phrases with what to say instead."""

    known: frozenset[str]
    banned: dict[str, str]
    prose: dict[str, str] = field(default_factory=dict)

    def knows(self, word: str) -> bool:
        """Report whether a word, or the singular of it, is in a word list."""
        return not self.known.isdisjoint(forms(word))

    def banned_in(self, words: list[str]) -> dict[str, str]:
        """Return the banned words and pairs of words in a name, each with what to say instead."""
        pairs = [f"{first}_{second}" for first, second in pairwise(words)]
        found = {word: self.banned[form] for word in (*pairs, *words) for form in forms(word) if form in self.banned}
        in_pairs = {word for pair in found.keys() & set(pairs) for word in pair.split("_")}
        return {word: instead for word, instead in found.items() if word not in in_pairs}


@dataclass(frozen=True)
class Entry:
    """A line of words.txt: a word that a package uses, where (all files if empty) and why."""

    line: int
    word: str
    prefix: str
    reason: str

    def allows(self, word: str, path: str, *, banned: bool) -> bool:
        """Report whether this entry allows the word, or the plural, in a file. A banned word needs a path."""
        return self.word in forms(word) and path.startswith(self.prefix) and bool(self.prefix or not banned)


@dataclass
class Package:
    """The checked contents of one package."""

    entries: list[Entry]
    names: list[Name] = field(default_factory=list)
    prose: list[Violation] = field(default_factory=list)
    docstrings: list[Violation] = field(default_factory=list)


# Words


def split_name(name: str) -> list[str]:
    """Return the words of a snake_case or CamelCase name in lower case, without digits and single letters."""
    spaced = re.sub(r"(?<=[A-Z])v(?=\d)", "_v", name)
    return [part.lower() for part in _PART.findall(spaced) if len(part) > 1]


def forms(word: str) -> list[str]:
    """Return a word and what it may be the plural of."""
    found = [word]
    if word.endswith("ies"):
        found.append(word[:-3] + "y")
    if word.endswith("es"):
        found.append(word[:-2])
    if word.endswith("s") and not word.endswith("ss"):
        found.append(word[:-1])
    return found


# Names of a source file


def module_names(path: str) -> Iterator[Name]:
    """Return the name of a module, or of the package that an `__init__.py` stands for."""
    parts = path.removesuffix(".py").split("/")
    name = parts[-2] if parts[-1] == "__init__" else parts[-1]
    if not _is_dunder(name):
        yield Name(path, 1, "module", name)


def defined_names(path: str, tree: ast.Module) -> Iterator[Name]:
    """Return the classes, public functions, arguments and public fields of a module."""
    for node in _statements(tree.body):
        yield from _names_of(path, node, in_class=False)


def _names_of(path: str, node: ast.stmt, *, in_class: bool) -> Iterator[Name]:
    match node:
        case ast.ClassDef():
            yield Name(path, node.lineno, "class", node.name)
            for member in _statements(node.body):
                yield from _names_of(path, member, in_class=True)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from _function_names(path, node)
        case ast.AnnAssign(target=ast.Name(id=name)) if in_class and not name.startswith("_"):
            yield Name(path, node.lineno, "field", name)


def _function_names(path: str, node: Function) -> Iterator[Name]:
    if node.name.startswith("_") and not _is_dunder(node.name):
        return
    if not _is_dunder(node.name):
        yield Name(path, node.lineno, "function", node.name)
    args = node.args
    optional = [arg for arg in (args.vararg, args.kwarg) if arg is not None]
    for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, *optional):
        if arg.arg not in ("self", "cls", "mcls"):
            yield Name(path, arg.lineno, "argument", arg.arg)


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Return the statements of a body and of its `if`, `try` and `with` blocks."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            nested = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
            yield from _statements(nested)


def metric_names(path: str, tree: ast.Module) -> Iterator[Name]:
    """Return the names of metrics: literals with a known prefix, and first arguments of metric constructors."""
    found: dict[tuple[int, str], None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _METRIC.fullmatch(node.value):
            found[node.lineno, node.value] = None
        elif isinstance(node, ast.Call) and node.args and _METRIC_CALL.fullmatch(_called(node)):
            found[node.args[0].lineno, _literal(node.args[0])] = None
    # `log.info("some text")` is called like a metric too, but its text is no name.
    yield from (Name(path, line, "metric", text) for line, text in found if re.fullmatch(r"[a-z0-9_:]+", text))


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _literal(node: ast.expr) -> str:
    """Return the literal text of a string or f-string, `_` for each replacement; empty for other expressions."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_literal(value) or "_" for value in values)
    return ""


# Docstrings and prose


def docstring_violations(path: str, tree: ast.Module) -> Iterator[Violation]:
    """Report docstrings that begin with a verb of `DOCSTRING_STARTS`."""
    for node in _documented(tree):
        text = ast.get_docstring(node, clean=False)
        if text is not None and (instead := bad_start(text)):
            first = text.strip().partition("\n")[0]
            yield Violation(path, node.body[0].lineno, f'docstring "{first}": begin with {instead}', kind="docstring")


def bad_start(docstring: str) -> str:
    """Return what a docstring should begin with instead, or an empty string if it begins well."""
    first = docstring.strip().partition("\n")[0]
    verb = re.match(r"[A-Za-z]*", first)
    start = verb.group().lower() if verb else ""
    if _MAKE_SO.match(first):
        return "the verb for what happens, such as Apply"
    return DOCSTRING_STARTS.get(start) or DOCSTRING_STARTS.get(start.removesuffix("s"), "")


def _documented(node: ast.Module | ast.ClassDef | Function) -> Iterator[ast.Module | ast.ClassDef | Function]:
    yield node
    for child in _statements(node.body):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _documented(child)


def prose_pattern(phrases: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds the phrases as whole words, also across the lines of a comment."""
    gap = r"(?:[ \t]|\n[ \t]*(?:#[ \t]*)?)+"
    choices = (
        gap.join(re.escape(word) for word in phrase.split()) for phrase in sorted(phrases, key=len, reverse=True)
    )
    return re.compile(rf"(?<![\w-])({'|'.join(choices) or '(?!)'})(?![\w-])", re.IGNORECASE)


def prose_violations(path: str, text: str, prose: dict[str, str], pattern: re.Pattern[str]) -> Iterator[Violation]:
    """Report banned phrases in the docstrings, comments and strings of a file."""
    if pattern.search(text) is None:
        return
    for line, part in _prose(text):
        for match in pattern.finditer(part):
            phrase = " ".join(word for word in match.group().lower().split() if word != "#")
            at = line + part.count("\n", 0, match.start())
            message = f'text "{phrase}": say {prose[phrase]}'
            yield Violation(path, at, message, phrase.replace(" ", "_"), "prose")


_TEXT_TOKENS = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}


def _prose(text: str) -> Iterator[tuple[int, str]]:
    """Return the strings with a space in them and the blocks of comments, each with its first line."""
    comments: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.append((token.start[0], token.string))
        elif token.type in _TEXT_TOKENS and " " in token.string:
            yield token.start[0], token.string
    yield from _blocks(comments)


def _blocks(comments: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    block: list[tuple[int, str]] = []
    for line, comment in comments:
        if block and line != block[-1][0] + 1:
            yield block[0][0], "\n".join(text for _, text in block)
            block = []
        block.append((line, comment))
    if block:
        yield block[0][0], "\n".join(text for _, text in block)


# Checks


def parse_entries(text: str) -> Iterator[Entry]:
    """Return the entries of a words.txt; empty lines and lines that begin with # do not count."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            word, _, reason = line.strip().partition(" ")
            word, _, prefix = word.partition("@")
            yield Entry(number, word.lower(), prefix, reason.strip())


def name_violations(lists: WordLists, names: Iterable[Name]) -> Iterator[Violation]:
    """Report the banned and the unknown words of names."""
    for name in names:
        words = split_name(name.text)
        where = f"{name.role} {name.text}"
        banned = lists.banned_in(words)
        for word, instead in banned.items():
            yield Violation(name.path, name.line, f'{where}: "{word}" is banned, say {instead}', word, "banned")
        skipped = PROJECT_WORDS.union(*(word.split("_") for word in banned))
        for word in dict.fromkeys(words):
            if word not in skipped and not lists.knows(word):
                message = f'{where}: "{word}" is in no word list; use a word of the field'
                yield Violation(name.path, name.line, message, word, "unknown")


def allow(found: Iterable[Violation], entries: list[Entry]) -> tuple[list[Violation], set[Entry]]:
    """Return the violations that no entry allows, and the entries that allow one."""
    left, used = [], set()
    for violation in found:
        banned = violation.kind != "unknown"
        allowing = {entry for entry in entries if entry.allows(violation.word, violation.path, banned=banned)}
        used |= allowing
        if not allowing:
            left.append(violation)
    return left, used


def entry_violations(entries: list[Entry], used: set[Entry], lists: WordLists) -> Iterator[Violation]:
    """Report what is wrong with a words.txt: entries without a reason, not needed or too many."""
    if len(entries) > MAX_ENTRIES:
        message = f"{len(entries)} entries, {MAX_ENTRIES} at most"
        yield Violation("", entries[MAX_ENTRIES].line, message, kind="entry")
    for entry in entries:
        if not entry.reason:
            yield Violation("", entry.line, f'"{entry.word}" has no reason', kind="entry")
        banned = lists.banned_in([entry.word])
        if banned and not entry.prefix:
            message = f'"{entry.word}" is banned, say {banned[entry.word]}; only {entry.word}@path can allow it'
            yield Violation("", entry.line, message, kind="entry")
        elif entry not in used:
            yield Violation("", entry.line, f'"{entry.word}" is not needed, remove it', kind="entry")


def check(package: Package, lists: WordLists) -> list[Violation]:
    """Return all violations of a package. Those of words.txt have an empty path."""
    found = (*name_violations(lists, package.names), *package.prose)
    left, used = allow(found, package.entries)
    left += package.docstrings
    left.sort(key=lambda violation: (violation.path, violation.line))
    return [*entry_violations(package.entries, used, lists), *left]


# Files


def read_list(path: Path) -> Iterator[str]:
    """Return the lines of a list without comments."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return (line.strip() for line in lines if line.strip() and not line.startswith("#"))


def load_lists(folder: Path = LISTS) -> WordLists:
    """Read the word lists and the lists of banned words and phrases."""
    known = frozenset(word for source in SOURCES for word in read_list(folder / f"{source}.txt"))
    return WordLists(known, _load_banned(folder / "banned.txt"), _load_banned(folder / "banned_prose.txt"))


def _load_banned(path: Path) -> dict[str, str]:
    """Read `word  what to say instead` lines; two spaces separate, so that a phrase can have one."""
    return dict(re.split(r" {2,}", line, maxsplit=1) for line in read_list(path))


def load_package(folder: Path, lists: WordLists) -> Package:
    """Read the sources and the words.txt of a package."""
    words = folder / "words.txt"
    package = Package(list(parse_entries(words.read_text(encoding="utf-8") if words.exists() else "")))
    pattern = prose_pattern(lists.prose)
    for file in sorted((folder / "src").rglob("*.py")):
        if GENERATED.isdisjoint(file.parts):
            path = file.relative_to(folder / "src").as_posix()
            _read_source(package, path, file.read_text(encoding="utf-8"), lists.prose, pattern)
    return package


def _read_source(package: Package, path: str, text: str, prose: dict[str, str], pattern: re.Pattern[str]) -> None:
    tree = ast.parse(text, filename=path)
    package.names += module_names(path)
    package.names += defined_names(path, tree)
    if _METRIC_HINT.search(text):
        package.names += metric_names(path, tree)
    package.docstrings += docstring_violations(path, tree)
    package.prose += prose_violations(path, text, prose, pattern)


# Command line


def unknown_words(found: dict[str, list[Violation]]) -> Iterator[str]:
    """Return a line for each unknown or banned word: count, word, an example; the most frequent first."""
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for folder, violations in found.items():
        for violation in violations:
            if violation.kind in ("unknown", "banned"):
                places[violation.word, violation.kind].append(_place(folder, violation))
    for (word, kind), examples in sorted(places.items(), key=lambda item: (-len(item[1]), item[0])):
        yield f"{len(examples):5}  {word:20} {kind:8} {examples[0]}"


def lines(found: dict[str, list[Violation]], wanted: Callable[[Violation], bool]) -> Iterator[str]:
    """Return a line for each violation: place and message."""
    for folder, violations in found.items():
        yield from (f"{_place(folder, one)}: {one.message}" for one in violations if wanted(one))


def _place(folder: str, violation: Violation) -> str:
    path = f"src/{violation.path}" if violation.path else "words.txt"
    return f"packages/{folder}/{path}:{violation.line}"


def _arguments(packages: Iterable[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", choices=list(packages), help="check only this package")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--words", action="store_true", help="list unknown and banned words: count, word, an example")
    shown.add_argument("--docstrings", action="store_true", help="list only docstrings that begin with a wrong verb")
    shown.add_argument("--prose", action="store_true", help="list only banned phrases in docstrings, comments, strings")
    return parser.parse_args()


def main() -> int:
    """Check the packages and print the violations; return the exit code."""
    folders = {path.parent.name: path.parent for path in sorted(ROOT.glob("packages/*/src"))}
    options = _arguments(folders)
    lists = load_lists()
    packages = {
        name: load_package(folders[name], lists) for name in ([options.package] if options.package else folders)
    }
    found = {name: check(package, lists) for name, package in packages.items()}
    kind = "docstring" if options.docstrings else "prose" if options.prose else ""
    shown = unknown_words(found) if options.words else lines(found, lambda one: kind in ("", one.kind))
    sys.stdout.writelines(f"{line}\n" for line in shown)
    if any(found.values()):
        return 1
    names = [name.text for package in packages.values() for name in package.names]
    words = {word for name in names for word in split_name(name)}
    sys.stdout.write(f"vocabulary: {len(names)} names, {len(words)} words, ok\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
