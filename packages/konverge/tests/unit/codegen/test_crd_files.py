"""Files without CRDs, and invalid CRDs: one clear error each."""

from __future__ import annotations

import pytest
import yaml

from konverge.codegen import models_from_crds
from konverge.codegen.manifests import MAX_CHARACTERS, read_crds
from konverge.errors import DecodeError

HEAD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
"""
GOOD = HEAD + "    schema: {openAPIV3Schema: {type: object}}\n"
WHO = "CustomResourceDefinition widgets.example.com in f.yaml"


def with_schema(schema: str) -> str:
    return f"{HEAD}    schema:\n      openAPIV3Schema: {schema}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no CustomResourceDefinition in f.yaml: it is empty"),
        ("---\n# nothing\n---\n", "no CustomResourceDefinition in f.yaml: it is empty"),
        ("a: b: c", "f.yaml is not YAML: mapping values are not allowed in this context, at line 1"),
        ("a: [1,\n  2", "f.yaml is not YAML: did not find expected ',' or ']', at line"),
        ("a: \x00", "f.yaml is not YAML: unacceptable character #x0000: control characters are not allowed"),
        ("!!python/object:os.system {}", "f.yaml is not YAML: could not determine a constructor"),
        ("hello", "f.yaml: expected an object with a kind, got str"),
        ("[1, 2]", "f.yaml: expected an object with a kind, got list"),
        ("kind: Pod\n---\nkind: Deployment", "no CustomResourceDefinition in f.yaml: only Deployment, Pod"),
        ("a: 1", "no CustomResourceDefinition in f.yaml: its objects have no kind"),
        ("kind: CustomResourceDefinition", "a CustomResourceDefinition in f.yaml: .metadata is missing"),
        (GOOD.replace("s.io/v1", "s.io/v1beta1"), f"{WHO} has apiVersion apiextensions.k8s.io/v1beta1: only apiext"),
        (GOOD.partition("  versions")[0], f"{WHO} has no versions"),
        (GOOD.replace("served: true", "served: false"), f"{WHO} serves none of its versions"),
        (GOOD.replace("Namespaced", "Everywhere"), f"{WHO} has scope 'Everywhere', expected Namespaced or Cluster"),
        (GOOD.replace("group: example.com", "group: 3"), f"{WHO}: .spec.group is 3, expected a string"),
        (GOOD.replace("kind: Widget, ", ""), f"{WHO}: .spec.names.kind is missing"),
        (HEAD, f"{WHO}: .spec.versions[0].schema is missing"),
        (with_schema(""), f"{WHO}: .spec.versions[0].schema.openAPIV3Schema is missing"),
        (with_schema("[]"), f"{WHO}: .spec.versions[0].schema.openAPIV3Schema is a list, expected an object"),
        (
            with_schema("{type: object, properties: {spec: {type: banana}}}"),
            "Widget.example.com/v1 in f.yaml: unknown type 'banana', at .spec of its schema",
        ),
        (
            with_schema("{type: object, properties: {spec: {type: array, items: 3}}}"),
            "Widget.example.com/v1 in f.yaml: expected a schema, got int, at .spec[] of its schema",
        ),
        (
            with_schema("{type: object, properties: {1: {type: string}}}"),
            "Widget.example.com/v1 in f.yaml: properties is not an object with string keys",
        ),
    ],
)
def test_an_invalid_file_is_one_clear_error(text: str, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        models_from_crds(text, source="f.yaml")

    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 100_000, "- " * 50_000])
def test_deep_nesting_is_refused_before_it_crashes_the_process(text: str) -> None:
    with pytest.raises(DecodeError, match=r"nested deeper than 200 levels"):
        models_from_crds(text, source="f.yaml")


def test_a_schema_that_contains_itself_is_refused() -> None:
    with pytest.raises(DecodeError, match="more than 100,000 fields or 60 levels"):
        models_from_crds(with_schema("&a {type: object, properties: {spec: *a}}"))


def test_a_small_file_that_expands_to_too_many_fields_is_refused() -> None:
    level = "{type: string}"
    anchors = []
    for name in "abcdefghijklmnop":
        fields = ", ".join(f"f{number}: {level}" for number in range(10))
        anchors.append(f"{name}: &{name} {{type: object, properties: {{{fields}}}}}")
        level = f"*{name}"

    with pytest.raises(DecodeError, match="the schema of v1 has more than 100,000 fields"):
        models_from_crds(with_schema(f"{{type: object, properties: {{{', '.join(anchors)}}}}}"))


def test_a_file_that_is_too_large_is_not_parsed() -> None:
    with pytest.raises(DecodeError, match="too large for a file of CRDs"):
        read_crds(" " * (MAX_CHARACTERS + 1))


def test_objects_of_other_kinds_are_ignored() -> None:
    assert [each.kind.kind for each in read_crds(f"kind: Pod\n---\n{GOOD}---\nkind: Service\n")] == ["Widget"]


def test_lists_of_kubectl_are_parsed() -> None:
    crd = yaml.safe_load(GOOD)
    several = yaml.safe_dump({"kind": "List", "items": [crd, {"kind": "Pod"}]})
    del crd["kind"]
    typed = yaml.safe_dump({"kind": "CustomResourceDefinitionList", "apiVersion": crd["apiVersion"], "items": [crd]})

    assert read_crds(several) == read_crds(GOOD) == read_crds(typed)


def test_a_date_is_a_string() -> None:
    schema = "{type: object, properties: {spec: {type: string, enum: [2026-01-01, 2026-99-99]}}}"

    assert 'Literal["2026-01-01", "2026-99-99"]' in models_from_crds(with_schema(schema))
