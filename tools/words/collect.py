"""Write the word lists: the words of the exported names of other projects, at the versions named here.

    PYTHONPATH=. python3.13 tools/words/collect.py [list ...]

It needs go and cargo to fetch the sources; the `python` list describes the interpreter that runs it. A list is a set of
facts, single words in alphabetical order; nothing else of the sources is kept.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import platform
import re
import subprocess
import sys
import sysconfig
import tempfile
import types
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from vocabulary import LISTS, defined_names, split_name

GO_LISTS = {
    "kubernetes": [
        "k8s.io/api@v0.36.4",
        "k8s.io/apiextensions-apiserver@v0.36.4",
        "k8s.io/apimachinery@v0.36.4",
        "k8s.io/apiserver@v0.36.4",
    ],
    "controller_runtime": ["sigs.k8s.io/controller-runtime@v0.25.2"],
    "client_go": ["k8s.io/client-go@v0.36.4"],
}
KUBE_VERSION = "5.0.0"
KUBE_CRATES = ("kube", "kube-client", "kube-core", "kube-runtime")
MAX_LETTERS = 20

# Toys, editors and tests: their names are not part of the language that libraries share.
SKIPPED_MODULES = frozenset(
    [
        "antigravity",
        "encodings",
        "ensurepip",
        "idlelib",
        "pydoc_data",
        "test",
        "this",
        "tkinter",
        "turtle",
        "turtledemo",
    ]
)

_RUST_ITEM = re.compile(r"\bpub (?:(?:async|const|unsafe) )*(?:fn|struct|enum|trait|type|mod|const|static) (\w+)")
_RUST_FIELD = re.compile(r"^\s*pub (\w+):", re.MULTILINE)
_RUST_FUNCTION = re.compile(r"\b(?:pub (?:(?:async|const|unsafe) )*)?fn (\w+)(?:<[^(]*>)?\(([^{;]*)\)")
_RUST_BODY = re.compile(r"^pub (enum|trait) \w+[^{;]*\{(.*?)^\}", re.MULTILINE | re.DOTALL)
_CARGO = """
[package]
name = "words"
version = "0.1.0"
edition = "2024"
[lib]
path = "lib.rs"
[dependencies]
kube = {{ version = "={version}", features = ["runtime"] }}
"""


def write_list(name: str, origin: str, names: Iterable[str]) -> None:
    """Write the words of the names as a sorted list."""
    words = {word for found in names for word in split_name(found) if is_word(word)}
    header = f"# Words of the exported names of {origin}.\n# Written by tools/words/collect.py.\n"
    (LISTS / f"{name}.txt").write_text(header + "".join(f"{word}\n" for word in sorted(words)), encoding="utf-8")
    sys.stdout.write(f"{name}: {len(words)} words\n")


def is_word(word: str) -> bool:
    """Report whether a part of a name can be a word: not too long, and with a vowel or short."""
    return len(word) <= MAX_LETTERS and (len(word) <= 4 or re.search("[aeiouy]", word) is not None)


def go_names(modules: list[str]) -> list[str]:
    """Return the exported names of Go modules."""
    folders = [_go_folder(module) for module in modules]
    program = str(LISTS / "gonames" / "main.go")
    command = ["go", "run", program, *folders]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()


def _go_folder(module: str) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(["go", "mod", "init", "words"], cwd=scratch, check=True, capture_output=True)
        command = ["go", "mod", "download", "-json", module]
        answer = json.loads(subprocess.run(command, cwd=scratch, check=True, stdout=subprocess.PIPE).stdout)
    return str(answer["Dir"])


def kube_names() -> Iterator[str]:
    """Return the public names of the kube crates."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "Cargo.toml").write_text(_CARGO.format(version=KUBE_VERSION), encoding="utf-8")
        (folder / "lib.rs").touch()
        command = ["cargo", "vendor", "--quiet", "--versioned-dirs", "crates"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for crate in KUBE_CRATES:
            for path in (folder / "crates" / f"{crate}-{KUBE_VERSION}" / "src").rglob("*.rs"):
                yield path.stem
                yield from rust_names(path.read_text(encoding="utf-8"))


def rust_names(text: str) -> Iterator[str]:
    """Return the public items of a Rust file: also fields, variants, methods of traits, and arguments."""
    text = re.sub(r"//.*", "", text).partition("#[cfg(test)]")[0]
    yield from _RUST_ITEM.findall(text)
    yield from _RUST_FIELD.findall(text)
    for match in _RUST_FUNCTION.finditer(text):
        if match.group().startswith("pub "):
            yield from _rust_arguments(match.group(2))
    for sort, body in _RUST_BODY.findall(text):
        if sort == "enum":
            yield from re.findall(r"^ {4}([A-Z]\w*)", body, re.MULTILINE)
        for name, arguments in _RUST_FUNCTION.findall(body):
            yield from (name, *_rust_arguments(arguments))


def _rust_arguments(text: str) -> list[str]:
    return re.findall(r"(?:^|[,(]\s*)(?:mut )?(\w+):\s", text)


def python_names() -> Iterator[str]:
    """Return the public names of the standard library: from the sources, or by inspection of compiled modules."""
    library = Path(sysconfig.get_path("stdlib"))
    for module in sorted(sys.stdlib_module_names - SKIPPED_MODULES):
        if module.startswith("_"):
            continue
        files = [library / f"{module}.py", *(library / module).rglob("*.py")]
        for path in filter(Path.is_file, files):
            yield from _source_names(library, path)
        if not any(map(Path.is_file, files)):
            yield from _compiled_names(module)
    # Compiled halves of modules whose Python source only imports the names.
    yield from _inspected(*map(importlib.import_module, ("builtins", "_io", "_socket", "_ssl", "_struct", "_datetime")))


def _source_names(library: Path, path: Path) -> Iterator[str]:
    parts = path.relative_to(library).with_suffix("").parts
    if any(part.startswith("_") and part != "__init__" for part in parts) or SKIPPED_MODULES & set(parts):
        return
    yield from (part for part in parts if part != "__init__")
    tree = ast.parse(path.read_bytes())
    yield from (name.text for name in defined_names(path.name, tree) if not name.text.startswith("_"))


def _compiled_names(module: str) -> Iterator[str]:
    yield module
    try:
        yield from _inspected(importlib.import_module(module))
    except ImportError:
        sys.stderr.write(f"{module} is not part of this interpreter\n")


def _inspected(*owners: types.ModuleType | type) -> Iterator[str]:
    for owner in owners:
        for name, value in list(vars(owner).items()):
            if not name.startswith("_") and not name.isupper():  # constants are abbreviations of the platform
                yield name
                yield from _inspected(value) if isinstance(value, type) else _parameters(value)


def _parameters(value: object) -> Iterator[str]:
    if callable(value):
        try:
            yield from inspect.signature(value).parameters
        except (AttributeError, TypeError, ValueError):
            return


def collectors() -> dict[str, tuple[str, Callable[[], Iterable[str]]]]:
    """Return, for each list, where its words come from and what collects the names."""
    found: dict[str, tuple[str, Callable[[], Iterable[str]]]] = {}
    for name, modules in GO_LISTS.items():
        found[name] = (", ".join(modules).replace("@", " "), partial(go_names, modules))
    found["kube_rs"] = (f"the crates {', '.join(KUBE_CRATES)} {KUBE_VERSION}", kube_names)
    found["python"] = (f"the standard library of Python {platform.python_version()}", python_names)
    return found


def main() -> None:
    """Write the lists that the arguments name, or all."""
    found = collectors()
    for name in sys.argv[1:] or found:
        origin, collect = found[name]
        write_list(name, origin, collect())


if __name__ == "__main__":
    main()
