"""Load Python source files from their paths, whatever their names.

`import operator` finds the module of the standard library, not the `operator.py` in the current folder. So a file is
loaded from its path. Rules:

1. A file in a package is a module of that package: `shop/operator.py` is `shop.operator`, so relative imports work.
   Below the working directory a folder is a package even without `__init__.py`, except for a `src` folder: the names
   of modules in `src/shop` and `examples/shop/src/shop` start with `shop`.
2. The folder of the file, and the folder that contains its package, are importable.
3. A loaded module is never replaced. If its name is already in use, the module of the file gets a suffix.
4. An error while a file is loaded is reported in one line, with the file and the line of the author's code.
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

__all__ = ["import_root", "load_file", "module_path", "report_import_errors"]

_INIT = "__init__.py"
_MAX_MESSAGE = 300


def load_file(file: Path) -> ModuleType:
    """Load a file, or return its module if it is already loaded."""
    root = import_root(file)
    own = file.parent if file.name == _INIT else file.with_suffix("")
    first, *others = own.relative_to(root).parts
    _make_importable(root)
    if not (file.parent / _INIT).is_file() and str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))  # last, so that a `queue.py` there does not shadow the standard library
    location = root / first if others or file.name == _INIT else file
    name = _unused_name(first.replace(".", "_"), location)
    if location == file or name != first:
        _load(name, location)
    return import_module(".".join((name, *others)))


def import_root(file: Path) -> Path:
    """Return the folder that module names start from: it contains the outermost package, or the file."""
    if "." in file.stem:
        return file.parent
    root = file.parent
    while (root / _INIT).is_file() and root.parent != root:
        root = root.parent
    if root.is_relative_to(Path.cwd()):
        root = _source_folder(file)
    # A module name cannot contain a dot, so a folder with one is the outermost package or not part of the name.
    for folder in file.parents:
        if folder == root:
            break
        if "." in folder.name:
            return folder.parent if (folder / _INIT).is_file() else folder
    return root


def _source_folder(file: Path) -> Path:
    """Return the innermost src folder of a file that is not a package; the working directory if there is none."""
    here = Path.cwd()
    folders = file.parents[: len(file.relative_to(here).parts) - 1]
    return next((one for one in folders if one.name == "src" and not (one / _INIT).is_file()), here)


@contextmanager
def report_import_errors(source: Path) -> Iterator[None]:
    """Report an error in the block, which imports a file or a folder, as a one-line click.ClickException."""
    try:
        yield
    except click.ClickException:
        raise
    except (Exception, SystemExit) as error:
        raise click.ClickException(_describe(error, source)) from error


def module_path(module: ModuleType) -> str:
    """Return the path of a module for messages, or its name if it has no file."""
    file = getattr(module, "__file__", None)
    return _relative(file) if file else module.__name__


def _load(name: str, location: Path) -> None:
    """Load the module of a file, or the package of a folder, under a name."""
    if name in sys.modules:
        return
    spec = _spec(name, location)
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        if spec.loader is not None:
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def _spec(name: str, location: Path) -> ModuleSpec:
    if not location.is_dir():
        spec = spec_from_file_location(name, location)
    elif (location / _INIT).is_file():
        spec = spec_from_file_location(name, location / _INIT, submodule_search_locations=[str(location)])
    else:
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(location)]
    assert spec is not None, "a .py file has a loader"
    return spec


def _unused_name(name: str, location: Path) -> str:
    loaded = sys.modules.get(name)
    if loaded is None and name not in sys.stdlib_module_names:
        return name
    locations = [*getattr(loaded, "__path__", ()), getattr(loaded, "__file__", None) or ""]
    return name if str(location) in locations else f"{name}_{crc32(os.fsencode(location)):08x}"


def _make_importable(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


# Error messages


def _describe(error: BaseException, source: Path) -> str:
    where = _location_of(error, source)
    match error:
        case SyntaxError(msg=message, filename=str(file), lineno=int(line)):
            return f"{_relative(file)}, line {line}: not valid Python: {message}"
        case ModuleNotFoundError(name=str(name)):
            return f"{where}: there is no module {name!r} (install it next to konverge, or correct the import)"
        case SyntaxError() | UnicodeDecodeError():
            return f"{_relative(source)}: not valid Python: {_one_line(error)}"
        case ValueError() if "null bytes" in str(error):
            return f"{_relative(source)}: not valid Python: {error}"
    return f"{where}: {type(error).__name__}: {_one_line(error)}".rstrip(": ")


def _location_of(error: BaseException, source: Path) -> str:
    """Return the innermost frame of an error that is in the author's own files."""
    folder = source if source.is_dir() else import_root(source)
    frames = [(Path(frame.f_code.co_filename), line) for frame, line in walk_tb(error.__traceback__)]
    own = [frame for frame in frames if frame[0].is_relative_to(folder) and not _is_library(frame[0])]
    others = [frame for frame in frames if frame[0].is_absolute() and Path(__file__).parent not in frame[0].parents]
    file, line = (own or others or [(source, 0)])[-1]
    return f"{_relative(file)}, line {line}" if line else _relative(file)


def _is_library(file: Path) -> bool:
    return "site-packages" in file.parts or Path(__file__).parents[1] in file.parents


def _relative(file: str | Path) -> str:
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:_MAX_MESSAGE]
