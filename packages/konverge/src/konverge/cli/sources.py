"""Sources: files with Python, loaded as what they are, whatever they are called.

`import operator` finds the standard library's, not the `operator.py` in this folder. So a file is loaded from its path.
Rules:

1. A file in a package is that package's module, `shop/operator.py` is `shop.operator`: relative imports work. Below the
   working directory a folder is a package also without `__init__.py`.
2. Its folder, and the one that its package is in, can be imported from.
3. A module that is there already is never replaced: where its name is taken, the file's gets an ending.
4. What fails while a file is loaded is told in one line, with the file and line of whoever wrote it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from zlib import crc32

import click

__all__ = ["imported", "load_file", "module_path", "root_of"]

_INIT = "__init__.py"
_LONGEST = 300


def load_file(file: Path) -> ModuleType:
    """Load a file, or give the module that it was loaded as before."""
    root = root_of(file)
    own = file.parent if file.name == _INIT else file.with_suffix("")
    first, *others = own.relative_to(root).parts
    _make_importable(root)
    if not (file.parent / _INIT).is_file() and str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))  # last: `things/queue.py` is no reason to lose the standard library's
    place = root / first if others or file.name == _INIT else file
    name = _free_name(first.replace(".", "_"), place)
    if place == file or name != first:
        _load(name, place)
    return import_module(".".join((name, *others)))


def root_of(file: Path) -> Path:
    """Give the folder that the first package, or the file, is in: what the names of its modules start from."""
    if "." in file.stem:
        return file.parent
    root = file.parent
    while (root / _INIT).is_file() and root.parent != root:
        root = root.parent
    if root.is_relative_to(Path.cwd()):
        root = Path.cwd()
    # A name of a module has no dots in it: where a folder's has some, it is the first or not part of it.
    for folder in file.parents:
        if folder == root:
            break
        if "." in folder.name:
            return folder.parent if (folder / _INIT).is_file() else folder
    return root


@contextmanager
def imported(source: Path) -> Iterator[None]:
    """Tell in one line what fails in the block, which imports a file or what is in a folder.

    Raises: click.ClickException.
    """
    try:
        yield
    except click.ClickException:
        raise
    except (Exception, SystemExit) as error:
        raise click.ClickException(_told(error, source)) from error


def module_path(module: ModuleType) -> str:
    """Give where a module is, for people."""
    file = getattr(module, "__file__", None)
    return _near(file) if file else module.__name__


def _load(name: str, place: Path) -> None:
    """Have the module of a file or the package of a folder under a name."""
    if name in sys.modules:
        return
    spec = _spec(name, place)
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        if spec.loader is not None:
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def _spec(name: str, place: Path) -> ModuleSpec:
    if not place.is_dir():
        spec = spec_from_file_location(name, place)
    elif (place / _INIT).is_file():
        spec = spec_from_file_location(name, place / _INIT, submodule_search_locations=[str(place)])
    else:
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(place)]
    assert spec is not None, "a .py file has a loader"
    return spec


def _free_name(name: str, place: Path) -> str:
    there = sys.modules.get(name)
    if there is None and name not in sys.stdlib_module_names:
        return name
    places = [*getattr(there, "__path__", ()), getattr(there, "__file__", None) or ""]
    return name if str(place) in places else f"{name}_{crc32(os.fsencode(place)):08x}"


def _make_importable(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


# Telling what failed


def _told(error: BaseException, source: Path) -> str:
    where = _where(error, source)
    match error:
        case SyntaxError(msg=message, filename=str(file), lineno=int(line)):
            return f"{_near(file)}, line {line}: this is no Python: {message}"
        case ModuleNotFoundError(name=str(name)):
            return f"{where}: there is no module {name!r} (install it beside konverge, or correct the import)"
        case SyntaxError() | UnicodeDecodeError():
            return f"{_near(source)}: this is no Python: {_one_line(error)}"
        case ValueError() if "null bytes" in str(error):
            return f"{_near(source)}: this is no Python: {error}"
    return f"{where}: {type(error).__name__}: {_one_line(error)}".rstrip(": ")


def _where(error: BaseException, source: Path) -> str:
    """Give the last place in the author's own files that an error went through."""
    folder = source if source.is_dir() else root_of(source)
    frames = [(Path(frame.f_code.co_filename), line) for frame, line in walk_tb(error.__traceback__)]
    own = [one for one in frames if one[0].is_relative_to(folder) and not _is_foreign(one[0])]
    others = [one for one in frames if one[0].is_absolute() and Path(__file__).parent not in one[0].parents]
    file, line = (own or others or [(source, 0)])[-1]
    return f"{_near(file)}, line {line}" if line else _near(file)


def _is_foreign(file: Path) -> bool:
    return "site-packages" in file.parts or Path(__file__).parents[1] in file.parents


def _near(file: str | Path) -> str:
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:_LONGEST]
