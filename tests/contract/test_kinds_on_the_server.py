"""The generated kinds on a real server: what it is sent, what it fills in, and what it already holds."""

from __future__ import annotations

import importlib
import importlib.util
import json
from typing import Any

import pytest
import yaml

from konverge.codegen import package_files
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.authentication.v1 import TokenRequest, TokenRequestSpec
from konverge.k8s.autoscaling.v1 import Scale
from konverge.k8s.core.v1 import ServiceAccount
from konverge.objects.codec import decode, encode, from_wire, to_wire
from konverge.objects.edits import difference, full_object
from konverge.objects.kinds import Kind, split_api_version
from konverge.objects.resources import Resource
from konverge.testing import ControlPlane
from repository import ROOT

PACKAGE = ROOT / "packages" / "konverge" / "src" / "konverge" / "k8s"
OBJECTS: list[dict[str, Any]] = list(yaml.safe_load_all((ROOT / "tests/data/minimal-objects.yaml").read_text()))
WITHOUT_COLLECTION = {"Eviction", "Scale", "TokenRequest"}
NOT_CREATED = WITHOUT_COLLECTION | {"Binding", "ComponentStatus"}


def generated_kinds() -> dict[Kind, type[Resource]]:
    """Give every class of an object in `konverge.k8s`."""
    found = {}
    for file in sorted(PACKAGE.glob("*/v*.py")):
        module = importlib.import_module(f"konverge.k8s.{file.parent.name}.{file.stem}")
        for name in module.__all__:
            if issubclass(getattr(module, name), Resource):
                found[getattr(module, name).__kind__] = getattr(module, name)
    return found


KINDS = generated_kinds()


def class_for(obj: dict[str, Any]) -> type[Resource]:
    sought = (*split_api_version(obj["apiVersion"]), obj["kind"])
    return next(model for kind, model in KINDS.items() if kind[:3] == sought)


def path_of(kind: Kind, namespace: str) -> str:
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    return f"{root}/namespaces/{namespace}/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"


def said(value: Any) -> Any:
    """Leave out what says nothing: nulls, empty lists and maps, and what only holds those."""
    if isinstance(value, dict):
        return {key: inner for key, each in value.items() if (inner := said(each)) not in (None, [], {})}
    return [said(each) for each in value] if isinstance(value, list) else value


def label(obj: dict[str, Any]) -> str:
    return f"{obj['kind']}.{obj['apiVersion']}"


@pytest.mark.parametrize("obj", OBJECTS, ids=label)
def test_what_a_class_writes_is_taken_and_what_the_server_fills_in_is_read_without_loss(
    obj: dict[str, Any], control_plane: ControlPlane
) -> None:
    model = class_for(obj)
    sent = encode(from_wire(model, obj))
    path = f"{path_of(model.__kind__, 'default')}?dryRun=All&fieldValidation=Strict"

    answer = control_plane.request("POST", path, body=json.loads(sent))
    assert answer.status == 201, answer.body
    read = decode(model, answer.body)

    assert said(to_wire(read)) == said(answer.json())
    assert full_object(read) == answer.json()
    assert difference(read) == {}


def test_there_is_an_object_here_for_every_kind_that_can_be_created() -> None:
    assert {label(obj) for obj in OBJECTS} == {str(kind) for kind in KINDS if kind.kind not in NOT_CREATED}


def test_all_that_a_fresh_server_holds_is_read_without_loss(control_plane: ControlPlane) -> None:
    seen: set[str] = set()
    for kind, model in KINDS.items():
        answer = control_plane.request("GET", path_of(kind, "default"))
        if answer.status != 200:
            continue
        for item in answer.json()["items"]:
            item |= {"apiVersion": kind.api_version, "kind": kind.kind}
            read = decode(model, json.dumps(item).encode())
            assert said(to_wire(read)) == said(item), f"{kind} {read.key}"
            assert full_object(read) == item
            seen.add(kind.kind)

    assert {"APIService", "ClusterRole", "FlowSchema", "PriorityClass", "Service"} <= seen


@pytest.mark.usefixtures("control_plane")  # it says whether the programs are there
def test_the_package_is_what_make_generate_would_write() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "tools" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    with ControlPlane() as fresh:  # other tests install kinds on the shared one
        description, version = generate.describe(fresh)

    written = {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}
    assert package_files(description, server_version=version) == written
    assert generate.compressed_schemas(description) == generate.SCHEMAS.read_bytes()


def test_kinds_of_subresources_are_written_there(control_plane: ControlPlane, namespace: str) -> None:
    deployment = next(obj for obj in OBJECTS if obj["kind"] == "Deployment")
    made = control_plane.request("POST", path_of(Deployment.__kind__, namespace), body=deployment)
    assert made.status == 201, made.body
    path = f"{path_of(Deployment.__kind__, namespace)}/x/scale"
    scale = decode(Scale, control_plane.request("GET", path).body)
    scale.spec.replicas = 3
    scaled = control_plane.request("PUT", path, body=full_object(scale))
    assert decode(Scale, scaled.body).spec.replicas == 3

    control_plane.request("POST", path_of(ServiceAccount.__kind__, namespace), body={"metadata": {"name": "x"}})
    wish = TokenRequest(spec=TokenRequestSpec(audiences=["example"], expiration_seconds=3600))
    token = control_plane.request("POST", f"{path_of(ServiceAccount.__kind__, namespace)}/x/token", body=to_wire(wish))
    assert token.status == 201, token.body
    assert decode(TokenRequest, token.body).status.token
