"""Move modules and rename identifiers in the whole repository; mypy and the tests then judge the result.

    tools/rename.py module konverge.cache.intake konverge.cache.decoder
    tools/rename.py name Untyped Unstructured
    tools/rename.py name silence idle_timeout --in packages/konverge/src/konverge/cache packages/konverge/tests
    tools/rename.py table FILE        # lines of the two forms above, "#" starts a comment

A module is a file or a package. Its file moves with `git mv`, and every dotted name, import and path that names it is
rewritten, in Python, documentation and configuration alike. An identifier is replaced wherever it stands as a whole
word, so limit a word that has other meanings with ``--in``. A lock lets several people rename at once.
"""

from __future__ import annotations

import argparse
import fcntl
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE_ROOTS = ("packages/*/src", "packages/*/tests", "tests/support", "tests/contract", "bench", "src", ".")
TEXT = {".py", ".md", ".toml", ".txt", ".yaml", ".in", ".json", ".sh", ""}
UNTOUCHED = ("tools/words/", "bench/results/", "tests/data/", "LICENSE", "tools/rename.py", "CHANGELOG.md")


def git(*arguments: str) -> str:
    """Run git in the repository and return what it prints."""
    return subprocess.run(("git", *arguments), cwd=ROOT, check=True, capture_output=True, text=True).stdout


def text_files(within: Iterable[str] = ()) -> Iterator[Path]:
    """Yield the text files that git knows or does not ignore, below the given paths."""
    listed = git("ls-files", "--cached", "--others", "--exclude-standard", "--", *within).splitlines()
    for name in sorted(set(listed)):
        path = ROOT / name
        if path.suffix in TEXT and path.is_file() and not name.startswith(UNTOUCHED):
            yield path


def substitute(pattern: re.Pattern[str], replacement: str, within: Iterable[str] = ()) -> int:
    """Replace a pattern in text files; return how many files changed."""
    changed = 0
    for path in text_files(within):
        before = path.read_text(errors="surrogateescape")
        after = pattern.sub(replacement, before)
        if after != before:
            path.write_text(after, errors="surrogateescape")
            changed += 1
    return changed


def rename_identifier(old: str, new: str, within: Iterable[str]) -> int:
    """Replace an identifier where it stands as a whole word."""
    return substitute(re.compile(rf"(?<![\w]){re.escape(old)}(?![\w])"), new, within)


def locate(module: str) -> tuple[Path, Path] | None:
    """Return the source root and the file or folder of a module."""
    relative = Path(*module.split("."))
    for pattern in SOURCE_ROOTS:
        for root in sorted(ROOT.glob(pattern)) if "*" in pattern else [ROOT / pattern]:
            for path in (root / relative, root / relative.with_suffix(".py")):
                if path.suffix == ".py" and path.is_file():
                    return root, path
                if path.is_dir() and path.suffix == "" and any(path.glob("*.py")):
                    return root, path
    return None


def move_module(old: str, new: str, root: str | None) -> int:
    """Move a module's file, to another source root if one is named, and rewrite all that names it."""
    found = locate(old)
    if found is None:
        raise SystemExit(f"rename: no module {old}")
    source_root, path = found
    target_root = ROOT / root if root else source_root
    target = target_root / Path(*new.split("."))
    target = target.with_suffix(".py") if path.is_file() else target
    target.parent.mkdir(parents=True, exist_ok=True)
    git("mv", str(path), str(target))
    return rewrite_module_name(old, new)


def rewrite_module_name(old: str, new: str) -> int:
    """Rewrite imports, dotted names and paths of a module that moved."""
    if "." not in old:
        return _rewrite_top_level(old, new)
    changed = substitute(re.compile(rf"(?<![\w.]){re.escape(old)}(?!\w)"), new)
    old_parent, old_name = old.rsplit(".", 1)
    new_parent, _, new_name = new.rpartition(".")
    single = re.compile(rf"(?m)^(\s*)from {re.escape(old_parent)} import {old_name}( as \w+)?$")
    changed += substitute(single, rf"\1from {new_parent} import {new_name}\2")
    old_path, new_path = old.replace(".", "/"), new.replace(".", "/")
    return changed + substitute(re.compile(rf"(?<![\w.-]){re.escape(old_path)}(?=/|\.py\b|\b(?!\w))"), new_path)


def _rewrite_top_level(old: str, new: str) -> int:
    changed = substitute(re.compile(rf"(?m)^(\s*from ){old}( import )"), rf"\1{new}\2")
    importing = re.compile(rf"(?m)^\s*import {old}$")
    for path in text_files():
        text = path.read_text(errors="surrogateescape")
        if importing.search(text):
            path.write_text(re.sub(rf"(?<![\w./\"]){old}(?![\w/\"])", new, text), errors="surrogateescape")
            changed += 1
    return changed


def run(arguments: list[str]) -> None:
    """Carry out one command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("module", "name"):
        sub = commands.add_parser(command)
        sub.add_argument("old")
        sub.add_argument("new")
        if command == "module":
            sub.add_argument("--root", help="the source root to move to, such as packages/konverge-cluster/src")
        else:
            sub.add_argument("--in", dest="within", nargs="+", default=[], help="files and folders to change")
    commands.add_parser("table").add_argument("file", type=Path)
    options = parser.parse_args(arguments)
    if options.command == "table":
        for line in options.file.read_text().splitlines():
            if words := shlex.split(line, comments=True):
                run(words)
        return
    if options.command == "module":
        changed = move_module(options.old, options.new, options.root)
    else:
        changed = rename_identifier(options.old, options.new, options.within)
    sys.stdout.write(f"{options.old} -> {options.new}: {changed} files\n")


if __name__ == "__main__":
    with open(ROOT / ".git" / "rename.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run(sys.argv[1:])
