"""Names, columns, scale and selectable fields of a kind, checked when the class is created."""

from __future__ import annotations

import types
from typing import Any

import pytest
from msgspec.structs import fields

from konverge.objects.conditions import Condition
from konverge.objects.kinds import Scope
from konverge.objects.models import field
from konverge.schema import AGE, Column, CustomResource, Scale, Spec, Status, crd_for, definition_of
from konverge.schema.definitions import Definition, DefinitionKeywords
from konverge.schema.names import plural_of
from konverge.schema.structs import StructKeywords, StructOptions


class Inner(Spec):
    color: str = "red"


class WideSpec(Spec):
    replicas: int = 1
    name: str = "a"
    public: bool = False
    share: float = 0.5
    amount: int | str = 1
    inner: Inner = field(default_factory=Inner)
    labels: dict[str, str] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    inners: list[Inner] = field(default_factory=list)
    raw: dict[str, Any] = field(default_factory=dict)


class WideStatus(Status):
    replicas: int = 0
    selector: str = ""
    conditions: list[Condition] = field(default_factory=list)


def kind(name: str = "Wide", **keywords: Any) -> type[CustomResource[WideSpec, WideStatus]]:
    given = {"group": "example.com", "version": "v1", **keywords}
    cls = types.new_class(name, (CustomResource[WideSpec, WideStatus],), given)
    assert issubclass(cls, CustomResource)
    return cls


def version(**keywords: Any) -> dict[str, Any]:
    entry: dict[str, Any] = crd_for(kind(**keywords))["spec"]["versions"][0]
    return entry


@pytest.mark.parametrize(
    ("name", "plural"),
    [
        ("WebApp", "webapps"),
        ("Policy", "policies"),
        ("Gateway", "gateways"),
        ("Ingress", "ingresses"),
        ("Box", "boxes"),
        ("Patch", "patches"),
        ("Mesh", "meshes"),
        ("Quiz", "quizes"),
        ("Y", "ies"),
    ],
)
def test_the_plural_follows_english(name: str, plural: str) -> None:
    assert plural_of(name) == plural


def test_type_checkers_know_every_class_keyword() -> None:
    assert list(DefinitionKeywords.__annotations__) == [field.name for field in fields(Definition)]
    assert {field.name for field in fields(StructOptions)} <= set(StructKeywords.__annotations__)


def test_names_have_defaults() -> None:
    definition = definition_of(kind())

    assert definition.names() == {"kind": "Wide", "listKind": "WideList", "plural": "wides", "singular": "wide"}
    assert definition.scope is Scope.NAMESPACED
    assert definition.status
    assert definition.storage
    assert definition.served


def test_every_name_can_be_set() -> None:
    names = {"kind": "Thing", "plural": "stuff", "singular": "piece", "list_kind": "Heap"}

    definition = definition_of(kind(**names, short_names=("a", "b"), categories="all", scope="Cluster"))

    assert definition.names() == {
        "kind": "Thing",
        "listKind": "Heap",
        "plural": "stuff",
        "singular": "piece",
        "shortNames": ["a", "b"],
        "categories": ["all"],
    }
    assert definition.identity.scope is Scope.CLUSTER


@pytest.mark.parametrize(
    ("keywords", "where"),
    [
        ({"group": "example"}, ".spec.group"),
        ({"group": ""}, ".spec.group"),
        ({"group": "Example.com"}, ".spec.group"),
        ({"group": "a..b"}, ".spec.group"),
        ({"group": f"{'a.' * 130}b"}, ".spec.group"),
        ({"version": "1"}, ".spec.versions[].name"),
        ({"version": "V1"}, ".spec.versions[].name"),
        ({"kind": "Web_App"}, ".spec.names.kind"),
        ({"kind": "1App"}, ".spec.names.kind"),
        ({"kind": "a" * 64}, ".spec.names.kind"),
        ({"list_kind": "Web App"}, ".spec.names.listKind"),
        ({"list_kind": "Wide"}, ".spec.names.listKind"),
        ({"plural": "Webapps"}, ".spec.names.plural"),
        ({"plural": "web.apps"}, ".spec.names.plural"),
        ({"singular": "-web"}, ".spec.names.singular"),
        ({"short_names": ("ok", "Wa")}, ".spec.names.shortNames[1]"),
        ({"categories": ("a b",)}, ".spec.names.categories[0]"),
        ({"scope": "Namespace"}, ".spec.scope"),
        ({"deprecated": "a\nb"}, ".spec.versions[].deprecationWarning"),
        ({"deprecated": "x" * 257}, ".spec.versions[].deprecationWarning"),
        ({"deprecated": ""}, ".spec.versions[].deprecationWarning"),
    ],
)
def test_a_name_that_the_server_rejects_is_refused(keywords: dict[str, Any], where: str) -> None:
    with pytest.raises(ValueError) as raised:
        kind(**keywords)

    assert str(raised.value).startswith("class Wide: ")
    assert f", at {where} (" in str(raised.value)


@pytest.mark.parametrize(
    ("keywords", "says"),
    [
        ({"group": None}, "group must be str, got None"),
        ({"short_names": (1,)}, "short_names must be str, got 1"),
        ({"columns": ".spec.name"}, "columns must be Column, got '.spec.name'"),
        ({"rules": ["self.x"]}, "rules must be Rule, got 'self.x'"),
        ({"scale": ".spec.replicas"}, "scale must be Scale | None, got '.spec.replicas'"),
        ({"storage": "yes"}, "storage must be bool, got 'yes'"),
        ({"deprecated": 5}, "deprecated must be bool | str, got 5"),
    ],
)
def test_a_keyword_of_the_wrong_type_is_refused(keywords: dict[str, Any], says: str) -> None:
    with pytest.raises(TypeError) as raised:
        kind(**keywords)

    assert str(raised.value) == f"class Wide: {says}"


def test_a_class_name_that_is_not_a_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="'Web_App' is not a DNS label"):
        kind("Web_App")


def test_columns_take_their_type_from_the_schema() -> None:
    columns = (
        Column("Replicas", ".spec.replicas"),
        Column("Share", ".spec.share", priority=1, description="a part"),
        Column("Public", ".spec.public"),
        Column("Name", ".spec.name"),
        Column("Amount", ".spec.amount"),
        Column("Color", ".spec.inner.color"),
        Column("First", ".spec.words[0]"),
        Column("Colors", ".spec.inners[*].color"),
        Column("Label", r".spec.labels.a\.b/c"),
        Column("Quoted", ".spec.labels['a.b']"),
        Column("Any", ".spec.raw.a.b[0].c"),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("Since", '.status.conditions[?(@.type=="Ready")].lastTransitionTime'),
        Column("Generation", ".metadata.generation"),
        Column("Forced", ".spec.replicas", type="string", format="int32"),
        AGE,
    )

    entries = version(columns=columns)["additionalPrinterColumns"]

    assert entries[1] == {
        "name": "Share",
        "type": "number",
        "jsonPath": ".spec.share",
        "priority": 1,
        "description": "a part",
    }
    assert [entry["type"] for entry in entries] == [
        *("integer", "number", "boolean", "string", "string", "string", "string", "string", "string", "string"),
        *("string", "string", "date", "integer", "string", "date"),
    ]


@pytest.mark.parametrize(
    ("column", "what"),
    [
        (Column("A", ".spec.replica"), "'.spec.replica' is not in the schema: there is no .spec.replica"),
        (Column("A", ".spec.inner.size"), "there is no .spec.inner.size"),
        (Column("A", ".spec.name.first"), "there is no .spec.name.first"),
        (Column("A", ".spec.name[0]"), "there is no .spec.name[0]"),
        (Column("A", ".spec.words.first"), "there is no .spec.words.first"),
        (Column("A", ".metadata.nothing"), "there is no .metadata.nothing"),
        (Column("A", "spec.replicas"), "is not a JSON path"),
        (Column("A", ".spec..replicas"), "is not a JSON path"),
        (Column("A", ".spec.words[x]"), "is not a JSON path"),
        (Column("A", ""), "is not a JSON path"),
        (Column("", ".spec.replicas"), "a column needs a name"),
        (Column("A", ".spec.replicas", type="int"), "a column cannot be 'int'"),
        (Column("A", ".spec.replicas", format="int16"), "a column cannot be 'int16'"),
    ],
)
def test_an_invalid_column_is_refused(column: Column, what: str) -> None:
    with pytest.raises(ValueError) as raised:
        kind(columns=(AGE, column))

    assert what in str(raised.value)
    assert ", at .spec.versions[].additionalPrinterColumns[1] (" in str(raised.value)


def test_scale_and_selectable_fields_are_in_the_crd() -> None:
    entry = version(scale=Scale(selector=".status.selector"), selectable=(".spec.name", ".spec.inner.color"))

    assert entry["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }
    assert entry["selectableFields"] == [{"jsonPath": ".spec.name"}, {"jsonPath": ".spec.inner.color"}]


@pytest.mark.parametrize(
    ("scale", "where"),
    [
        (Scale(replicas=".spec.size"), "specReplicasPath"),
        (Scale(replicas=".spec.name"), "specReplicasPath"),
        (Scale(replicas=".status.replicas"), "specReplicasPath"),
        (Scale(replicas=""), "specReplicasPath"),
        (Scale(status_replicas=".status.size"), "statusReplicasPath"),
        (Scale(status_replicas=".spec.replicas"), "statusReplicasPath"),
        (Scale(selector=".status.replicas"), "labelSelectorPath"),
        (Scale(selector=".metadata.name"), "labelSelectorPath"),
    ],
)
def test_a_scale_path_that_does_not_fit_is_refused(scale: Scale, where: str) -> None:
    with pytest.raises(ValueError) as raised:
        kind(scale=scale)

    assert f", at .spec.versions[].subresources.scale.{where} (" in str(raised.value)


@pytest.mark.parametrize(
    "path",
    [".spec.share", ".spec.amount", ".spec.inner", ".spec.words", ".spec.words[0]", ".metadata.name", ".spec.nothing"],
)
def test_a_field_that_is_not_selectable_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r", at \.spec\.versions\[\]\.selectableFields\[0\] \("):
        kind(selectable=path)


def test_selectable_fields_are_limited_and_unique() -> None:
    with pytest.raises(ValueError, match=r"is listed twice, at \.spec\.versions\[\]\.selectableFields\[0\]"):
        kind(selectable=(".spec.name", ".spec.name"))
    with pytest.raises(ValueError, match="9 fields are selectable"):
        kind(selectable=[".spec.name"] * 9)


def test_a_status_can_be_a_field_like_any_other() -> None:
    entry = version(status=False)

    assert "subresources" not in entry
    assert "status" in entry["schema"]["openAPIV3Schema"]["properties"]


def test_a_status_subresource_needs_a_status() -> None:
    with pytest.raises(ValueError, match=r"the kind has a status subresource but no status, at \.status"):

        class Thing(CustomResource[WideSpec], group="example.com", version="v1", status=True): ...
