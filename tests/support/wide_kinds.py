"""Kinds that use every feature of `konverge.schema`; a test creates each of them on a real server."""

from __future__ import annotations

from datetime import date, datetime
from enum import IntEnum, StrEnum
from typing import Annotated, Any, Generic, Literal, NewType, TypeVar
from uuid import UUID

from konverge.k8s.core.v1 import ConfigMap, PodTemplateSpec
from konverge.objects.conditions import Condition
from konverge.objects.durations import Duration
from konverge.objects.int_or_string import IntOrString
from konverge.objects.kinds import Scope
from konverge.objects.models import Model, field
from konverge.objects.quantities import Quantity
from konverge.objects.resources import Unstructured
from konverge.objects.times import MicroTime, Time
from konverge.schema import (
    AGE,
    IMMUTABLE,
    Atomic,
    Column,
    CustomResource,
    Default,
    EmbeddedResource,
    Format,
    ListMap,
    ListSet,
    Meta,
    Nullable,
    Opaque,
    PreserveUnknown,
    Rule,
    Scale,
    Spec,
    Status,
)
from konverge.schema.formats import FORMATS
from schema_strategies import kind_for, spec_of

GROUP = "wide.example.com"
T = TypeVar("T")
PortNumber = NewType("PortNumber", int)


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Scalars(Spec):
    """Every scalar type."""

    text: str
    whole: int
    number: float
    flag: bool
    data: bytes
    at: datetime
    time: Time
    micro: MicroTime
    day: date
    id_: UUID
    span: Duration
    amount: Quantity
    port: IntOrString
    alias: PortNumber
    either: int | float
    color: Color
    level: Level
    word: Literal["a", "b"]
    digit: Literal[1, 2]
    anything: Any


class AllScalars(CustomResource[Scalars], group=GROUP, version="v1", plural="allscalars"):
    """A kind of scalars."""


class Defaults(Spec):
    text: str = "hello"
    empty: str = ""
    whole: Annotated[int, Meta(ge=0, le=100, multiple_of=5)] = 10
    number: Annotated[float, Meta(gt=0.5, lt=1.5)] = 1.0
    flag: bool = False
    data: bytes = b"\x00\xff"
    at: datetime = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
    day: date = date(2026, 1, 1)
    span: Duration = Duration("1h30m")
    amount: Quantity = Quantity("1.5Gi")
    port: IntOrString = "http"
    share: Annotated[int, Meta(ge=0)] | Annotated[str, Meta(pattern="^[0-9]+%$")] = "25%"
    color: Color = Color.RED
    level: Level = Level.HIGH
    words: list[str] = field(default_factory=lambda: ["a", "b"])
    pairs: dict[str, int] = field(default_factory=lambda: {"one": 1})
    filled: Annotated[int | None, Default(7)] = None
    null_or_five: int | None = 5


class Inner(Spec):
    size: int = 3
    name: str = "inner"


class DefaultedParts(Spec):
    as_is: Inner = field(default_factory=Inner)
    changed: Inner = field(default_factory=lambda: Inner(size=9))
    by_key: dict[str, Inner] = field(default_factory=dict)
    many: list[Inner] = field(default_factory=list)


class WithDefaults(CustomResource[Defaults], group=GROUP, version="v1", plural="withdefaults"): ...


class WithDefaultedParts(CustomResource[DefaultedParts], group=GROUP, version="v1", plural="withdefaultedparts"): ...


class Port(Spec):
    name: str
    protocol: Literal["TCP", "UDP"] = "TCP"
    port: Annotated[int, Meta(ge=1, le=65535)]


class Pair(Spec, atomic=True):
    left: str
    right: str


class Lists(Spec):
    plain: list[str] = field(default_factory=list)
    whole: Annotated[list[int], Atomic()] = field(default_factory=list)
    unique: set[str] = field(default_factory=set)
    also_unique: Annotated[list[Annotated[str, Meta(min_length=1)]], ListSet(), Meta(max_length=3)] = field(
        default_factory=list
    )
    pairs: Annotated[list[Pair], ListSet()] = field(default_factory=list)
    ports: Annotated[list[Port], ListMap("name", "protocol")] = field(default_factory=list)
    nested: list[list[int]] = field(default_factory=list)
    perhaps: list[int | None] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    bare: list[Any] = field(default_factory=list)


class WithLists(CustomResource[Lists], group=GROUP, version="v1", plural="withlists"): ...


class Open(Spec, preserve_unknown=True):
    known: int = 1


class Maps(Spec):
    labels: Annotated[dict[str, Annotated[str, Meta(max_length=5)]], Meta(max_length=2)] = field(default_factory=dict)
    whole: Annotated[dict[str, str], Atomic()] = field(default_factory=dict)
    structs: dict[str, Port] = field(default_factory=dict)
    lists: dict[str, Annotated[list[Port], ListMap("name")]] = field(default_factory=dict)
    perhaps: dict[str, int | None] = field(default_factory=dict)
    raw: dict[str, Any] = field(default_factory=dict)
    pair: Annotated[Pair | None, Atomic()] = None
    open_: Open | None = None
    also_open: Annotated[Port | None, PreserveUnknown()] = None


class WithMaps(CustomResource[Maps], group=GROUP, version="v1", plural="withmaps"): ...


class Embedded(Spec):
    untyped: Unstructured | None = None
    config: ConfigMap | None = None
    raw: Annotated[dict[str, Any] | None, EmbeddedResource()] = None
    template: PodTemplateSpec | None = None
    opaque: Annotated[PodTemplateSpec | None, Opaque()] = None


class WithEmbedded(CustomResource[Embedded], group=GROUP, version="v1", plural="withembedded"): ...


class Node(Spec):
    name: str = "root"
    left: Annotated[Node | None, Opaque()] = None
    others: Annotated[list[Node], Opaque()] = field(default_factory=list)
    threes: list[Annotated[int, Default(3)]] = field(default_factory=list)


class Tree(CustomResource[Node], group=GROUP, version="v1"): ...


class Box(Spec, Generic[T]):
    content: T


class Boxes(Spec):
    text: Box[str]
    number: Box[int]


class WithBoxes(CustomResource[Boxes], group=GROUP, version="v1", plural="withboxes"): ...


class Git(Spec):
    url: str
    ref: str = "main"


class Source(Spec, exactly_one=("git", "image", "namespace")):
    """A union, in structural form."""

    git: Git | None = None
    image: str | None = None
    namespace: str | None = None


class Range(Spec, rules=[Rule("self.low <= self.high", message="low is above high", field_path=".low")]):
    low: int = 0
    high: int = 10


class Ruled(Spec):
    source: Source
    range_: Range = field(default_factory=Range)
    fixed: Annotated[str, IMMUTABLE] = "a"
    even: Annotated[int, Rule("self % 2 == 0", message_expression="self > 10 ? 'large and odd' : 'odd'")] = 0
    half: Annotated[float, Meta(ge=0.5)] = 0.5
    soft: Annotated[int | None, Rule("!oldSelf.hasValue() || self > oldSelf.value()", optional_old_self=True)] = None


class WithRules(
    CustomResource[Ruled],
    group=GROUP,
    version="v1",
    plural="withrules",
    rules=Rule("self.metadata.name.size() < 20", message="the name is too long", reason="FieldValueForbidden"),
): ...


class Nulls(Spec):
    required: int | None
    nullable: Annotated[int | None, Nullable()] = None
    absent: int | None = None


class WithNulls(CustomResource[Nulls], group=GROUP, version="v1", plural="withnulls"): ...


class Empty(Spec): ...


class Everything(Status):
    replicas: int = 0
    selector: str = ""
    phase: Literal["Pending", "Running"] = "Pending"
    conditions: list[Condition] = field(default_factory=list)
    finished_at: datetime | None = None
    amounts: dict[str, Quantity] = field(default_factory=dict)


class Sized(Spec):
    size: Annotated[int, Meta(ge=0)] = 1
    color: Color = Color.BLUE
    public: bool = False


class Machine(
    CustomResource[Sized, Everything],
    group=GROUP,
    version="v1",
    scope=Scope.CLUSTER,
    singular="machine",
    list_kind="MachineCollection",
    short_names=("mach", "mm"),
    categories=("wide",),
    scale=Scale(replicas=".spec.size", selector=".status.selector"),
    selectable=(".spec.color", ".spec.size", ".spec.public", ".status.phase"),
    columns=(
        Column("Size", ".spec.size", description="how large", format="int32"),
        Column("Color", ".spec.color", priority=1),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("Done", ".status.finishedAt"),
        Column("Tier", r".metadata.labels.example\.com/tier"),
        AGE,
    ),
):
    """A kind with every keyword."""


class Bare(CustomResource[Empty], group=GROUP, version="v1"):
    """A kind without options."""


class NoSubresource(CustomResource[Sized, Everything], group=GROUP, version="v1", status=False):
    """A kind without a status subresource."""


class Data(CustomResource[Empty], group=GROUP, version="v1", plural="datas"):
    """A kind with an additional top-level field."""

    values: dict[str, str] = field(default_factory=dict)
    """What it holds."""


class OldSpec(Spec):
    color: str = "red"


class Thing(CustomResource[Sized], group=GROUP, version="v1"): ...


class ThingV1Beta1(
    CustomResource[OldSpec], group=GROUP, version="v1beta1", kind="Thing", storage=False, deprecated="use v1"
): ...


class ThingV1Alpha1(
    CustomResource[OldSpec], group=GROUP, version="v1alpha1", kind="Thing", storage=False, served=False, deprecated=True
): ...


class Plain(Model):
    """A model that is neither Spec nor Status omits defaults, and the server sets them."""

    size: int = 3


class Mixed(Spec):
    plain: Plain = field(default_factory=Plain)
    inherited: Inner | None = None


class Heir(Inner, rules=[Rule("self.size < 100")]):
    extra: str = "x"


class WithHeir(CustomResource[Heir], group=GROUP, version="v1", plural="withheirs"): ...


class WithMixed(CustomResource[Mixed], group=GROUP, version="v1", plural="withmixed"): ...


WithFormats = kind_for(
    spec_of({name.replace("-", "_"): list[Annotated[str, Format(name)]] for name in FORMATS}), "WithFormats", GROUP
)


WIDE_KINDS: list[type[CustomResource[Any, Any]]] = [
    AllScalars,
    WithDefaults,
    WithDefaultedParts,
    WithLists,
    WithMaps,
    WithEmbedded,
    WithBoxes,
    Tree,
    WithRules,
    WithNulls,
    Machine,
    Bare,
    NoSubresource,
    Data,
    WithHeir,
    WithMixed,
    WithFormats,
]
"""Each kind that has one version only; `Thing` has three."""
