"""Local images: which program of this machine runs for which image.

    LocalImages([LocalImage("postgres:*", command=["/opt/pg/bin/postgres"], paths=["/opt/pg"])])
    LocalImages.load("images.yaml")
    LocalImages.of(operator)

A table in YAML is a list below `images`, with the fields of `LocalImage` in camelCase. `$(DIR)` is the directory of
the table and `$(PYTHON)` this interpreter; `$(POD_IP)`, `$(POD_NAME)`, `$(POD_NAMESPACE)` and the variables of the
container are expanded when a container starts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import yaml

if TYPE_CHECKING:
    from konverge.manager import Operator

__all__ = ["Arguments", "LocalImage", "LocalImages", "Others", "missing_image"]

Arguments: TypeAlias = Literal["replace", "append", "ignore"]
"""What `command` and `args` of a container do: replace those of the image as in Kubernetes, follow them, or nothing."""

Others: TypeAlias = Literal["simulate", "fail"]
"""What happens to pods none of whose images is in the table."""


@dataclass(frozen=True)
class LocalImage:
    """What runs for images that match a shell pattern.

    - `command` and `args` are those of the image (ENTRYPOINT and CMD of a Dockerfile); `env` its environment.
    - `arguments` is how `command` and `args` of a container combine with them.
    - `programs` are local programs for the names that a container's command, probes and hooks use.
    - `paths` are directories that the programs need. They are made readable for the user that runs the container.
    - `working_dir`, `user` (when started as root) and `stop_signal` are those of the image.
    """

    image: str
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    arguments: Arguments = "replace"
    programs: Mapping[str, str] = field(default_factory=dict)
    paths: Sequence[str] = ()
    working_dir: str = ""
    user: int | None = None
    stop_signal: str = "SIGTERM"

    def __post_init__(self) -> None:
        if not self.image or not isinstance(self.image, str):
            raise ValueError("a local image needs the pattern of the images that it stands for: image: 'postgres:*'")
        if self.arguments not in get_args(Arguments):
            raise ValueError(f"arguments of {self.image!r} is one of {_listed(Arguments)}, got {self.arguments!r}")
        if self.stop_signal not in Signals.__members__:
            raise ValueError(f"stop_signal of {self.image!r} is a name such as SIGINT, got {self.stop_signal!r}")
        for name in ("command", "args", "paths"):
            if isinstance(getattr(self, name), str):
                raise ValueError(f"{name} of {self.image!r} is a list, got {getattr(self, name)!r}")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, directory: str = "") -> LocalImage:
        """Parse one entry of a table.

        Raises: ValueError for an unknown field or an invalid value.
        """
        if not isinstance(values, Mapping):
            raise ValueError(f"an entry of a table is a mapping with image and command, got {values!r}")
        unknown = [name for name in values if name not in _FIELDS]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no field of a local image: write one of {', '.join(_FIELDS)}")
        constants = {"DIR": directory or os.getcwd(), "PYTHON": sys.executable}
        parsed: dict[str, Any] = {_FIELDS[name]: _substitute(value, constants) for name, value in values.items()}
        return cls(**{"image": "", **parsed})

    def argv(self, command: Sequence[str], args: Sequence[str]) -> list[str]:
        """Return what to execute for a container with this command and these arguments."""
        if self.arguments == "ignore":
            found = [*self.command, *self.args]
        elif self.arguments == "append":
            found = [*self.command, *self.args, *command, *args]
        elif command:
            found = [*command, *args]
        else:
            found = [*self.command, *(args or self.args)]
        return self.resolve(found)

    def resolve(self, argv: Sequence[str]) -> list[str]:
        """Return a command with the local program for its name."""
        return [self.programs.get(argv[0], argv[0]), *argv[1:]] if argv else []


class LocalImages:
    """A table of local images; where several match an image, the last one wins.

    A pod without any image of the table is simulated, or fails with `others="fail"`. In a pod with one, a container
    whose image is missing does not start (ErrImagePull).
    """

    def __init__(self, images: Iterable[LocalImage] = (), *, others: Others = "simulate") -> None:
        if others not in get_args(Others):
            raise ValueError(f"others is one of {_listed(Others)}, got {others!r}")
        self.images = tuple(images)
        self.others: Others = others
        for one in self.images:
            if not isinstance(one, LocalImage):
                raise ValueError(f"a table of local images has items LocalImage(pattern, command=[...]), got {one!r}")

    @classmethod
    def load(cls, *paths: str | os.PathLike[str]) -> LocalImages:
        """Read tables from YAML files; entries of later files win.

        Raises: ValueError for an invalid table; OSError for a file that cannot be read.
        """
        found = cls()
        for path in paths:
            found = found.merge(cls.from_dict(_read_yaml(Path(path)), directory=str(Path(path).resolve().parent)))
        return found

    @classmethod
    def of(cls, *operators: Operator) -> LocalImages:
        """Return the tables that operators ship; entries of later ones win.

        Raises: ValueError for an invalid table; OSError for a file that cannot be read.
        """
        found = cls()
        for table in (one for operator in operators for one in operator.images):
            found = found.merge(cls.load(table) if isinstance(table, Path) else cls(table()))
        return found

    @classmethod
    def from_dict(cls, values: Any, *, directory: str = "") -> LocalImages:
        """Parse a table: `{"images": [...], "others": "simulate"}`.

        Raises: ValueError for an invalid one.
        """
        if not isinstance(values, Mapping) or not isinstance(values.get("images"), list):
            raise ValueError(
                "a table of local images has a list `images`: write images: [{image: ..., command: [...]}]"
            )
        unknown = [name for name in values if name not in ("images", "others")]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no field of a table: write images or others")
        images = [LocalImage.from_dict(one, directory=directory) for one in values["images"]]
        return cls(images, others=values.get("others", "simulate"))

    def find(self, image: str) -> LocalImage | None:
        """Return the entry for an image, None if there is none."""
        names = (image, image if _has_tag(image) else f"{image}:latest")
        matching = [one for one in self.images if any(fnmatchcase(name, one.image) for name in names)]
        return matching[-1] if matching else None

    def runs(self, images: Iterable[str]) -> bool:
        """Report whether a pod with these images is run; if not, it is simulated."""
        return self.others == "fail" or any(self.find(image) is not None for image in images)

    def merge(self, other: LocalImages) -> LocalImages:
        """Return both tables as one, in which the other one wins."""
        return LocalImages([*self.images, *other.images], others=other.others)


def missing_image(image: str) -> str:
    """Return what to write for an image that no entry matches."""
    pattern = f"{image.rpartition(':')[0] if _has_tag(image) else image}:*"
    entry = f'{{image: "{pattern}", command: [PROGRAM]}}'
    return f'no local image for "{image}": add `- {entry}` to the table of local images'


def _has_tag(image: str) -> bool:
    return ":" in image.rpartition("/")[2]


def _read_yaml(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_bytes())
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is no YAML: {error}") from error


def _substitute(value: Any, constants: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for name, text in constants.items():
            value = value.replace(f"$({name})", text)
        return value
    if isinstance(value, Mapping):
        return {name: _substitute(str(one), constants) for name, one in value.items()}
    return [_substitute(str(one), constants) for one in value] if isinstance(value, list) else value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(one.title() for one in rest)


def _listed(literal: Any) -> str:
    return ", ".join(get_args(literal))


_FIELDS: Final = {_camel(one.name): one.name for one in fields(LocalImage)}
