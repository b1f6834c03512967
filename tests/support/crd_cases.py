"""Definitions that the API server accepts or rejects, for unit tests and for the comparison with the real server."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]

TEXT: Json = {"type": "string"}
WHOLE: Json = {"type": "integer"}
OBJECT: Json = {"type": "object"}


def obj(**properties: Any) -> Json:
    return {"type": "object", "properties": properties}


def definition(spec_schema: Json | None = None, *, plural: str = "things", group: str = "cases.example.com") -> Json:
    """Return a definition of one version whose objects have a spec with this schema."""
    schema = obj(spec=spec_schema if spec_schema is not None else {"type": "object"})
    return with_root(schema, plural=plural, group=group)


def with_root(schema: Json, *, plural: str = "things", group: str = "cases.example.com") -> Json:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    kind = plural[:-1].capitalize()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [version],
        },
    }


def listed(items: Any, **more: Any) -> Json:
    return {"type": "array", "items": items, **more}


LIST_MAP = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
KEYED = {"type": "object", "required": ["name"], "properties": {"name": TEXT, "value": TEXT}}

SPEC_SCHEMAS: dict[str, Json] = {
    "plain": obj(a=TEXT, b=WHOLE, c={"type": "number"}, d={"type": "boolean"}),
    "no type": {"properties": {"a": TEXT}},
    "no type of a field": obj(a={"description": "x"}),
    "no type of items": obj(a=listed({})),
    "no items": obj(a={"type": "array"}),
    "unknown type": obj(a={"type": "text"}),
    "type null": obj(a={"type": "null"}),
    "properties and additionalProperties": {"type": "object", "properties": {"a": TEXT}, "additionalProperties": TEXT},
    "properties and additionalProperties true": {
        "type": "object",
        "properties": {"a": TEXT},
        "additionalProperties": True,
    },
    "properties and additionalProperties false": {
        "type": "object",
        "properties": {"a": TEXT},
        "additionalProperties": False,
    },
    "map": {"type": "object", "additionalProperties": WHOLE},
    "map of anything": {"type": "object", "additionalProperties": True},
    "uniqueItems": obj(a=listed(TEXT, uniqueItems=True)),
    "reference": obj(a={"$ref": "#/definitions/x"}),
    "id": obj(a={"type": "string", "id": "x"}),
    "patternProperties": {"type": "object", "patternProperties": {"^a": TEXT}},
    "dependencies": {"type": "object", "dependencies": {"a": ["b"]}},
    "additionalItems": obj(a=listed(TEXT, additionalItems=True)),
    "definitions": {"type": "object", "definitions": {"a": TEXT}},
    "items as a list": obj(a={"type": "array", "items": [TEXT, WHOLE]}),
    "bad pattern": obj(a={"type": "string", "pattern": "(?=a)"}),
    "bad pattern bracket": obj(a={"type": "string", "pattern": "a["}),
    "bad pattern repeat": obj(a={"type": "string", "pattern": "a{2000}"}),
    "bad pattern escape": obj(a={"type": "string", "pattern": "\\Z"}),
    "bad pattern parenthesis": obj(a={"type": "string", "pattern": "(a"}),
    "bad pattern stray parenthesis": obj(a={"type": "string", "pattern": "a)"}),
    "bad pattern star": obj(a={"type": "string", "pattern": "*a"}),
    "bad pattern two stars": obj(a={"type": "string", "pattern": "a**"}),
    "bad pattern range": obj(a={"type": "string", "pattern": "[z-a]"}),
    "bad pattern backslash": obj(a={"type": "string", "pattern": "a\\"}),
    "bad pattern group name": obj(a={"type": "string", "pattern": "(?P<1>a)"}),
    "bad pattern any byte": obj(a={"type": "string", "pattern": "\\C"}),
    "type in anyOf": obj(a={"type": "string", "anyOf": [{"type": "string"}]}),
    "type in not": obj(a={"type": "string", "not": {"type": "string"}}),
    "default in allOf": obj(a={"type": "string", "allOf": [{"default": "x"}]}),
    "description in oneOf": obj(a={"type": "string", "oneOf": [{"description": "x", "title": "y"}]}),
    "nullable in anyOf": obj(a={"type": "string", "anyOf": [{"nullable": True}]}),
    "additionalProperties in anyOf": obj(a={"type": "object", "anyOf": [{"additionalProperties": {"minimum": 1}}]}),
    "preserve in anyOf": obj(a={"type": "object", "anyOf": [{"x-kubernetes-preserve-unknown-fields": True}]}),
    "embedded in anyOf": obj(a={"type": "object", "anyOf": [{"x-kubernetes-embedded-resource": True}]}),
    "int or string in anyOf": obj(a={"type": "string", "anyOf": [{"x-kubernetes-int-or-string": True}]}),
    "list type in anyOf": obj(a=listed(TEXT, anyOf=[{"x-kubernetes-list-type": "set"}])),
    "list keys in anyOf": obj(a=listed(TEXT, anyOf=[{"x-kubernetes-list-map-keys": ["a"]}])),
    "map type in anyOf": obj(a={"type": "object", "anyOf": [{"x-kubernetes-map-type": "atomic"}]}),
    "rules in anyOf": obj(a={"type": "object", "anyOf": [{"x-kubernetes-validations": [{"rule": "true"}]}]}),
    "field only in anyOf": {
        "type": "object",
        "properties": {"a": TEXT},
        "anyOf": [{"properties": {"b": {"minLength": 1}}}],
    },
    "items only in anyOf": obj(a={"type": "object", "anyOf": [{"items": {"minLength": 1}}]}),
    "field in anyOf": {"type": "object", "properties": {"a": TEXT}, "anyOf": [{"properties": {"a": {"minLength": 1}}}]},
    "metadata in anyOf": {
        "type": "object",
        "properties": {"metadata": OBJECT},
        "anyOf": [{"properties": {"metadata": {}}}],
    },
    "preserve false": obj(a={"type": "object", "x-kubernetes-preserve-unknown-fields": False}),
    "preserve": obj(a={"x-kubernetes-preserve-unknown-fields": True}),
    "int or string": obj(a={"x-kubernetes-int-or-string": True}),
    "int or string with anyOf": obj(
        a={"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
    ),
    "int or string with the wrong anyOf": obj(
        a={"x-kubernetes-int-or-string": True, "anyOf": [{"type": "string"}, {"type": "integer"}]}
    ),
    "int or string with allOf": obj(
        a={
            "x-kubernetes-int-or-string": True,
            "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "a"}],
        }
    ),
    "int or string and preserve": obj(
        a={"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True}
    ),
    "int or string and embedded": obj(
        a={"type": "object", "x-kubernetes-int-or-string": True, "x-kubernetes-embedded-resource": True}
    ),
    "embedded": obj(
        a={"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    ),
    "embedded without content": obj(a={"type": "object", "x-kubernetes-embedded-resource": True}),
    "embedded without type": obj(
        a={"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    ),
    "embedded text": obj(a={"type": "string", "x-kubernetes-embedded-resource": True}),
    "embedded map": obj(a={"type": "object", "x-kubernetes-embedded-resource": True, "additionalProperties": TEXT}),
    "embedded kind": obj(
        a={"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"kind": WHOLE, "apiVersion": WHOLE}}
    ),
    "embedded metadata": obj(
        a={"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"metadata": TEXT}}
    ),
    "embedded inside embedded metadata": obj(
        a={
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "properties": {
                "metadata": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                }
            },
        }
    ),
    "map type of a text": obj(a={"type": "string", "x-kubernetes-map-type": "atomic"}),
    "map type without type": obj(a={"x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-map-type": "atomic"}),
    "unknown map type": obj(a={"type": "object", "x-kubernetes-map-type": "other"}),
    "list type of a text": obj(a={"type": "string", "x-kubernetes-list-type": "atomic"}),
    "list type without type": obj(a={"x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-list-type": "atomic"}),
    "unknown list type": obj(a=listed(TEXT, **{"x-kubernetes-list-type": "other"})),
    "set": obj(a=listed(TEXT, **{"x-kubernetes-list-type": "set"})),
    "set of objects": obj(a=listed(obj(b=TEXT), **{"x-kubernetes-list-type": "set"})),
    "set of atomic objects": obj(
        a=listed({**obj(b=TEXT), "x-kubernetes-map-type": "atomic"}, **{"x-kubernetes-list-type": "set"})
    ),
    "set of sets": obj(
        a=listed(listed(TEXT, **{"x-kubernetes-list-type": "set"}), **{"x-kubernetes-list-type": "set"})
    ),
    "set of nullable": obj(a=listed({"type": "string", "nullable": True}, **{"x-kubernetes-list-type": "set"})),
    "list map": obj(a=listed(KEYED, **LIST_MAP)),
    "list map without keys": obj(a=listed(KEYED, **{"x-kubernetes-list-type": "map"})),
    "list keys without type": obj(a=listed(KEYED, **{"x-kubernetes-list-map-keys": ["name"]})),
    "list keys of a set": obj(
        a=listed(TEXT, **{"x-kubernetes-list-map-keys": ["name"], "x-kubernetes-list-type": "set"})
    ),
    "list map of texts": obj(a=listed(TEXT, **LIST_MAP)),
    "list map with an unknown key": obj(a=listed(KEYED, **{**LIST_MAP, "x-kubernetes-list-map-keys": ["other"]})),
    "list map with a key twice": obj(a=listed(KEYED, **{**LIST_MAP, "x-kubernetes-list-map-keys": ["name", "name"]})),
    "list map with an optional key": obj(a=listed(obj(name=TEXT), **LIST_MAP)),
    "list map with a default key": obj(a=listed(obj(name={"type": "string", "default": "x"}), **LIST_MAP)),
    "list map with a nullable key": obj(
        a=listed(
            {"type": "object", "required": ["name"], "properties": {"name": {**TEXT, "nullable": True}}}, **LIST_MAP
        )
    ),
    "list map with an object as key": obj(
        a=listed({"type": "object", "required": ["name"], "properties": {"name": OBJECT}}, **LIST_MAP)
    ),
    "list map of nullable": obj(a=listed({**KEYED, "nullable": True}, **LIST_MAP)),
    "default": obj(a={"type": "string", "default": "x"}),
    "default of the wrong type": obj(a={"type": "string", "default": 1}),
    "default out of bounds": obj(a={"type": "integer", "minimum": 3, "default": 1}),
    "default not among the choices": obj(a={"type": "string", "enum": ["a"], "default": "b"}),
    "default with unknown fields": obj(a={**obj(b=TEXT), "default": {"b": "x", "c": 1}}),
    "default null": obj(a={"type": "string", "default": None}),
    "default null nullable": obj(a={"type": "string", "nullable": True, "default": None}),
    "default of an object": obj(a={**obj(b={"type": "string", "default": "x"}), "default": {}}),
    "default that misses a required field": obj(a={**obj(b=TEXT), "required": ["b"], "default": {}}),
    "default of items": obj(a=listed({"type": "string", "default": 1})),
    "default of map values": obj(a={"type": "object", "additionalProperties": {"type": "string", "default": 1}}),
    "default of a list with repetitions": obj(
        a=listed(TEXT, **{"x-kubernetes-list-type": "set", "default": ["a", "a"]})
    ),
    "default of an embedded resource": obj(
        a={
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
            "default": {"kind": "X"},
        }
    ),
    "default of embedded metadata": obj(
        a={
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "properties": {
                "metadata": {"type": "object", "properties": {"name": {"type": "string", "default": "a/b"}}}
            },
        }
    ),
    "nullable": obj(a={"type": "string", "nullable": True}),
    "unknown format": obj(a={"type": "string", "format": "sha256"}),
    "format of an object": obj(a={"type": "object", "format": "date"}),
    "many wrong": obj(
        a={"description": "x"}, b={"type": "array"}, c={"type": "text"}, d={"type": "string", "pattern": "["}
    ),
}

ROOT_SCHEMAS: dict[str, Json] = {
    "root of another type": {"type": "string"},
    "root without type": {"properties": {"spec": OBJECT}},
    "root is a map": {"type": "object", "additionalProperties": TEXT},
    "root nullable": {"type": "object", "nullable": True},
    "root list": {"type": "array", "items": TEXT},
    "open root": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "metadata name": obj(metadata=obj(name={"type": "string", "maxLength": 5})),
    "metadata labels": obj(metadata=obj(labels={"type": "object", "additionalProperties": TEXT})),
    "metadata required": obj(metadata={"type": "object", "required": ["name"]}),
    "metadata text": obj(metadata=TEXT),
    "metadata described": obj(metadata={"type": "object", "description": "x"}),
    "kind number": obj(kind=WHOLE, apiVersion=WHOLE),
    "default of kind": obj(kind={"type": "string", "default": "X"}),
    "default of metadata": obj(metadata={"type": "object", "default": {}}),
    "default of the root": {"type": "object", "default": {}},
    "default of metadata name": obj(metadata=obj(name={"type": "string", "default": "x"})),
}


def _changed(change: Callable[[Json], object]) -> Json:
    made = copy.deepcopy(
        definition(obj(a=TEXT, n=WHOLE, m={"type": "object", "additionalProperties": TEXT}, l=listed(TEXT)))
    )
    change(made["spec"])
    return made


def _version(**more: Any) -> Callable[[Json], object]:
    return lambda spec: spec["versions"][0].update(more)


def _names(**more: Any) -> Callable[[Json], object]:
    return lambda spec: spec["names"].update(more)


def _second(**more: Any) -> Callable[[Json], object]:
    schema = {"openAPIV3Schema": obj(spec=obj(other=TEXT))}
    return lambda spec: spec["versions"].append(
        {"name": "v2", "served": True, "storage": False, "schema": schema, **more}
    )


def _column(**more: Any) -> Callable[[Json], object]:
    column = {"name": "A", "type": "string", "jsonPath": ".spec.a", **more}
    return _version(additionalPrinterColumns=[{key: value for key, value in column.items() if value is not None}])


def _scale(**paths: Any) -> Callable[[Json], object]:
    return _version(subresources={"scale": paths})


def _fields(*paths: str) -> Callable[[Json], object]:
    return _version(selectableFields=[{"jsonPath": path} for path in paths])


def _webhook(**more: Any) -> Callable[[Json], object]:
    config = {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://example.com/x"}, **more}
    return lambda spec: spec.update(conversion={"strategy": "Webhook", "webhook": config})


CHANGES: dict[str, Callable[[Json], object]] = {
    "no group": lambda spec: spec.pop("group"),
    "group without dot": lambda spec: spec.update(group="example"),
    "group with capitals": lambda spec: spec.update(group="Example.com"),
    "no scope": lambda spec: spec.pop("scope"),
    "unknown scope": lambda spec: spec.update(scope="Galaxy"),
    "no versions": lambda spec: spec.update(versions=[]),
    "no names": lambda spec: spec.update(names={}),
    "no plural": lambda spec: spec["names"].pop("plural"),
    "no kind": lambda spec: spec["names"].pop("kind"),
    "plural with capitals": _names(plural="Things"),
    "singular with a space": _names(singular="a b"),
    "kind with a dash": _names(kind="Thing-"),
    "list kind is kind": _names(listKind="Thing"),
    "bad list kind": _names(listKind="Thing List"),
    "bad short name": _names(shortNames=["ok", "No"]),
    "bad category": _names(categories=["All"]),
    "good names": _names(shortNames=["th"], categories=["all"], singular="thing", listKind="ThingList"),
    "two names wrong": _names(kind="1", singular="-"),
    "no storage version": _version(storage=False),
    "two storage versions": _second(storage=True),
    "two versions": _second(),
    "same version twice": _second(name="v1"),
    "bad version name": _version(name="V1"),
    "version without schema": lambda spec: spec["versions"][0].pop("schema"),
    "second version without schema": lambda spec: (_second()(spec), spec["versions"][1].pop("schema")),
    "schema without openAPIV3Schema": _version(schema={}),
    "deprecation warning alone": _version(deprecationWarning="x"),
    "deprecation warning empty": _version(deprecated=True, deprecationWarning=""),
    "deprecation warning with a line break": _version(deprecated=True, deprecationWarning="a\nb"),
    "deprecation warning too long": _version(deprecated=True, deprecationWarning="a" * 257),
    "column": _column(),
    "column without name": _column(name=""),
    "column without type": _column(type=""),
    "column of another type": _column(type="text"),
    "column with another format": _column(format="money"),
    "column without path": _column(jsonPath=""),
    "column with a bad path": _column(jsonPath="spec.a"),
    "column with a filter": _column(jsonPath='.status.conditions[?(@.type=="Ready")].status'),
    "scale": _scale(specReplicasPath=".spec.n", statusReplicasPath=".status.n"),
    "scale without paths": _scale(),
    "scale outside of spec": _scale(specReplicasPath=".status.n", statusReplicasPath=".spec.n"),
    "scale without dots": _scale(specReplicasPath="spec.n", statusReplicasPath="status.n"),
    "scale selector elsewhere": _scale(
        specReplicasPath=".spec.n", statusReplicasPath=".status.n", labelSelectorPath=".metadata.x"
    ),
    "scale selector": _scale(
        specReplicasPath=".spec.n", statusReplicasPath=".status.n", labelSelectorPath=".spec.selector"
    ),
    "field": _fields(".spec.a"),
    "field without dot": _fields("spec.a"),
    "field unknown": _fields(".spec.zz"),
    "field of an object": _fields(".spec"),
    "field of a map": _fields(".spec.m.key"),
    "field of a list": _fields(".spec.l[0]"),
    "field of metadata": _fields(".metadata.name"),
    "field twice": _fields(".spec.a", ".spec.a"),
    "field empty": _fields(""),
    "field beyond a text": _fields(".spec.a.b"),
    "unknown conversion": lambda spec: spec.update(conversion={"strategy": "Magic"}),
    "no strategy": lambda spec: spec.update(conversion={}),
    "webhook": _webhook(),
    "webhook without config": lambda spec: spec.update(conversion={"strategy": "Webhook"}),
    "webhook config without strategy": lambda spec: spec.update(
        conversion={"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "x"}}}
    ),
    "webhook without versions": _webhook(conversionReviewVersions=[]),
    "webhook with unknown versions": _webhook(conversionReviewVersions=["v9"]),
    "webhook with a version twice": _webhook(conversionReviewVersions=["v1", "v1"]),
    "webhook with bad versions": _webhook(conversionReviewVersions=["v1", "-"]),
    "webhook with url and service": _webhook(
        clientConfig={"url": "https://example.com", "service": {"namespace": "a", "name": "b"}}
    ),
    "webhook with neither": _webhook(clientConfig={}),
    "webhook over http": _webhook(clientConfig={"url": "http://example.com"}),
    "webhook with user": _webhook(clientConfig={"url": "https://a:b@example.com"}),
    "webhook with query": _webhook(clientConfig={"url": "https://example.com/?a=b"}),
    "webhook with fragment": _webhook(clientConfig={"url": "https://example.com/#a"}),
    "webhook without host": _webhook(clientConfig={"url": "https:///x"}),
    "webhook service": _webhook(clientConfig={"service": {"namespace": "a", "name": "b", "path": "/convert"}}),
    "webhook service without name": _webhook(clientConfig={"service": {"namespace": "", "name": ""}}),
    "webhook service with a bad path": _webhook(
        clientConfig={"service": {"namespace": "a", "name": "b", "path": "convert"}}
    ),
    "webhook service with an odd path": _webhook(
        clientConfig={"service": {"namespace": "a", "name": "b", "path": "/a//b c"}}
    ),
    "webhook service with a bad port": _webhook(
        clientConfig={"service": {"namespace": "a", "name": "b", "port": 70000}}
    ),
    "preserveUnknownFields": lambda spec: spec.update(preserveUnknownFields=True),
    "preserveUnknownFields false": lambda spec: spec.update(preserveUnknownFields=False),
    "status and root fields": lambda spec: (
        spec["versions"][0].update(subresources={"status": {}}),
        spec["versions"][0]["schema"]["openAPIV3Schema"].update(minProperties=1),
    ),
    "status and root rules": lambda spec: (
        spec["versions"][0].update(subresources={"status": {}}),
        spec["versions"][0]["schema"]["openAPIV3Schema"].update(required=["spec"]),
    ),
    "unknown field in the schema": lambda spec: spec["versions"][0]["schema"]["openAPIV3Schema"].update(foo=1),
    "number as name": _names(plural=1),
    "text as served": _version(served="yes"),
    "text as minimum": lambda spec: spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"][
        "properties"
    ]["n"].update(minimum="a"),
}


def definition_cases() -> dict[str, Json]:
    """Return every definition of the tables, by its name."""
    cases = {name: definition(copy.deepcopy(schema)) for name, schema in SPEC_SCHEMAS.items()}
    cases |= {name: with_root(copy.deepcopy(schema)) for name, schema in ROOT_SCHEMAS.items()}
    cases |= {name: _changed(change) for name, change in CHANGES.items()}
    nameless = definition()
    nameless["metadata"]["name"] = "other.cases.example.com"
    cases["name is not plural and group"] = nameless
    for state, annotation in (
        ("none", None),
        ("url", "https://example.com/x"),
        ("text", "fine"),
        ("un", "unapproved, x"),
    ):
        protected = definition(group="cases.k8s.io")
        if annotation is not None:
            protected["metadata"]["annotations"] = {"api-approved.kubernetes.io": annotation}
        cases[f"protected group, approval {state}"] = protected
    return cases
