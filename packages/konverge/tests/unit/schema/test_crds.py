"""CRDs from classes, as objects and as YAML."""

from __future__ import annotations

import types
from typing import Annotated, Any, Literal

import pytest
import yaml

from konverge.cli.sample import WebApp, WebAppSpec
from konverge.objects.metadata import ObjectMeta
from konverge.objects.models import field
from konverge.objects.resources import Unstructured
from konverge.schema import CustomResource, Meta, Rule, Spec, Status, WebhookConversion, crd_for, root_schema, to_yaml
from schema_strategies import kind_for

GOLDEN = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: webapps.example.com
spec:
  group: example.com
  names:
    kind: WebApp
    listKind: WebAppList
    plural: webapps
    singular: webapp
    shortNames:
    - wa
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        description: A stateless web application.
        type: object
        properties:
          apiVersion:
            type: string
          kind:
            type: string
          metadata:
            type: object
          spec:
            description: The desired state of the application.
            type: object
            properties:
              image:
                description: The container image to run.
                type: string
                minLength: 1
              replicas:
                description: The number of replicas.
                type: integer
                format: int64
                minimum: 0
                maximum: 100
                default: 1
            required:
            - image
          status:
            description: The observed state of the application.
            type: object
            properties:
              availableReplicas:
                description: The number of available replicas.
                type: integer
                format: int64
                default: 0
        required:
        - spec
    subresources:
      status: {}
      scale:
        specReplicasPath: .spec.replicas
        statusReplicasPath: .status.availableReplicas
    additionalPrinterColumns:
    - name: Image
      type: string
      jsonPath: .spec.image
    - name: Replicas
      type: integer
      jsonPath: .spec.replicas
    - name: Available
      type: integer
      jsonPath: .status.availableReplicas
    - name: Age
      type: date
      jsonPath: .metadata.creationTimestamp
"""


class NewSpec(Spec):
    size: int = 1


class OldSpec(Spec):
    """Not used any more."""

    length: int = 1


class Thing(CustomResource[NewSpec], group="example.com", version="v1", short_names=("th",), categories=("all",)):
    """A thing."""


class ThingV1Beta1(
    CustomResource[OldSpec], group="example.com", version="v1beta1", kind="Thing", storage=False, deprecated="use v1"
): ...


class ThingV1Alpha1(
    CustomResource[OldSpec],
    group="example.com",
    version="v1alpha1",
    kind="Thing",
    storage=False,
    served=False,
    deprecated=True,
): ...


def test_the_sample_has_this_yaml() -> None:
    assert to_yaml(crd_for(WebApp)) == GOLDEN


def test_a_crd_is_an_object_like_any_other() -> None:
    crd = crd_for(WebApp)

    assert isinstance(crd, Unstructured)
    assert crd.name == "webapps.example.com"
    assert crd.kind == "CustomResourceDefinition"


def test_each_call_returns_a_new_crd() -> None:
    crd_for(WebApp)["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clear()

    assert to_yaml(crd_for(WebApp)) == GOLDEN
    assert root_schema(WebApp)["required"] == ["spec"]


def test_several_versions_are_one_crd() -> None:
    crd = crd_for(ThingV1Alpha1, ThingV1Beta1, Thing)

    assert crd["spec"]["names"]["shortNames"] == ["th"]
    assert [{key: value for key, value in entry.items() if key != "schema"} for entry in crd["spec"]["versions"]] == [
        {"name": "v1alpha1", "served": False, "storage": False, "deprecated": True},
        {"name": "v1beta1", "served": True, "storage": False, "deprecated": True, "deprecationWarning": "use v1"},
        {"name": "v1", "served": True, "storage": True},
    ]


def test_exactly_one_version_is_stored() -> None:
    class AlsoStored(CustomResource[OldSpec], group="example.com", version="v2", kind="Thing"): ...

    with pytest.raises(ValueError, match=r"exactly one version must be stored, got v1, v2, at \.spec\.versions \("):
        crd_for(Thing, AlsoStored)
    with pytest.raises(ValueError, match="exactly one version must be stored, got none"):
        crd_for(ThingV1Beta1)
    with pytest.raises(ValueError, match="exactly one version must be stored, got none"):
        crd_for()


def test_a_version_is_listed_once() -> None:
    class Again(CustomResource[OldSpec], group="example.com", version="v1", kind="Thing", storage=False): ...

    with pytest.raises(ValueError, match=r"the version v1 is declared twice, at \.spec\.versions"):
        crd_for(Thing, Again)
    with pytest.raises(ValueError, match=r"the version v1beta1 is declared twice"):
        crd_for(Thing, ThingV1Beta1, ThingV1Beta1)


@pytest.mark.parametrize(
    ("keywords", "where"),
    [
        ({"group": "example.org"}, r"\.spec\.group"),
        ({"kind": "Other"}, r"\.spec\.names\.kind"),
        ({"plural": "stuff"}, r"\.spec\.names\.plural"),
        ({"scope": "Cluster"}, r"\.spec\.scope"),
        ({"short_names": ("x",)}, r"\.spec\.names\.shortNames"),
    ],
)
def test_versions_of_one_kind_share_its_names(keywords: dict[str, Any], where: str) -> None:
    given = {"group": "example.com", "version": "v2", "kind": "Thing", "storage": False, **keywords}
    other = types.new_class("Other", (CustomResource[OldSpec],), given)

    with pytest.raises(ValueError, match=rf", at {where} \(use the same value in all versions of a kind\)"):
        crd_for(Thing, other)


def test_a_conversion_webhook_has_a_service_or_a_url() -> None:
    by_service = WebhookConversion(service_name="hook", service_namespace="shop", ca_bundle="YQ==")
    by_address = WebhookConversion(url="https://example.com/convert")

    assert crd_for(Thing, ThingV1Beta1, conversion=by_service)["spec"]["conversion"] == {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {
                "service": {"name": "hook", "namespace": "shop", "path": "/convert", "port": 443},
                "caBundle": "YQ==",
            },
            "conversionReviewVersions": ["v1"],
        },
    }
    assert by_address.to_wire()["webhook"]["clientConfig"] == {"url": "https://example.com/convert"}
    assert "conversion" not in crd_for(Thing)["spec"]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"url": "http://example.com"},
        {"service_name": "a"},
        {"service_namespace": "a", "url": "https://a"},
        {"url": "https://a", "service_name": "a", "service_namespace": "b"},
    ],
)
def test_an_invalid_conversion_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"webhook|WebhookConversion"):
        WebhookConversion(**wrong)  # type: ignore[arg-type]


def test_private_keys_are_not_in_the_crd() -> None:
    class Source(Spec, exactly_one=("a", "b")):
        a: str | None = None
        b: Annotated[float, Meta(ge=0.5)] | None = None

    class Kept(CustomResource[Source], group="example.com", version="v1"): ...

    assert "x-konverge" in str(root_schema(Kept))
    assert "x-konverge" not in str(crd_for(Kept))


def test_rules_of_the_whole_object_are_at_the_root() -> None:
    class Ruled(CustomResource[NewSpec], group="example.com", version="v1", rules=Rule("self.spec.size > 0")): ...

    schema = crd_for(Ruled)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["x-kubernetes-validations"] == [{"rule": "self.spec.size > 0"}]


def test_yaml_has_no_aliases_and_long_texts_are_blocks() -> None:
    class Part(Spec):
        """A part.

        It has a long description: with a colon.
        """

        on: Literal["yes", "no"] = "yes"

    class Twice(Spec):
        one: Part = field(default_factory=Part)
        other: Part = field(default_factory=Part)

    class Shared(CustomResource[Twice], group="example.com", version="v1"): ...

    text = to_yaml(crd_for(Shared))
    assert "&id" not in text
    assert "description: |-" in text
    assert yaml.safe_load(text) == crd_for(Shared)


def test_objects_are_yaml_documents_too() -> None:
    app = WebApp(metadata=ObjectMeta(name="shop"), spec=WebAppSpec(image="shop:1"))

    first, second = yaml.safe_load_all(to_yaml(app, Unstructured(kind="ConfigMap", apiVersion="v1")))

    assert first["spec"] == {"image": "shop:1", "replicas": 1}
    assert "status" not in first
    assert second == {"kind": "ConfigMap", "apiVersion": "v1"}


class Documented(Spec):
    """The class."""

    plain: int = 1
    """The field."""
    other: Annotated[int, Meta(description="The annotation.")] = 1
    """Not this."""
    part: NewSpec = field(default_factory=NewSpec)
    """The part."""
    bare: OldSpec = field(default_factory=OldSpec)
    several: int = 1
    """First line.

    Third line.
    """
    none: int = 1


class Inherited(Documented):
    extra: int = 1
    """More."""


class Found(Status):
    size: int = 0
    """How large."""


class Docs(CustomResource[Inherited, Found], group="example.com", version="v1"):
    """A documented kind."""

    marker: str = ""
    """Beside the spec."""


def test_descriptions_come_from_docstrings() -> None:
    root = crd_for(Docs)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    spec = root["properties"]["spec"]

    assert root["description"] == "A documented kind."
    assert root["properties"]["marker"]["description"] == "Beside the spec."
    assert root["properties"]["status"]["properties"]["size"]["description"] == "How large."
    assert "description" not in spec
    assert {name: part.get("description") for name, part in spec["properties"].items()} == {
        "plain": "The field.",
        "other": "The annotation.",
        "part": "The part.",
        "bare": "Not used any more.",
        "several": "First line.\n\nThird line.",
        "none": None,
        "extra": "More.",
    }


def test_a_class_without_source_has_no_descriptions_of_fields() -> None:
    names: dict[str, Any] = {"Spec": Spec, "__name__": "nowhere"}
    exec('class Generated(Spec):\n    """The class."""\n    size: int = 1\n    """The field."""', names)

    spec = crd_for(kind_for(names["Generated"], "Sourceless"))["spec"]["versions"][0]["schema"]["openAPIV3Schema"][
        "properties"
    ]["spec"]
    assert spec["description"] == "The class."
    assert "description" not in spec["properties"]["size"]


def test_a_crd_can_omit_descriptions() -> None:
    assert "description" not in str(crd_for(WebApp, descriptions=False))


def test_only_a_custom_resource_has_a_crd() -> None:
    with pytest.raises(TypeError, match="is not a custom resource"):
        crd_for(Spec)  # type: ignore[arg-type]


def test_a_class_inside_a_function_has_its_descriptions() -> None:
    class Local(Spec):
        size: int = 1
        """How large."""

    class Kind(CustomResource[Local], group="example.com", version="v1"): ...

    spec = crd_for(Kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert spec["properties"]["size"]["description"] == "How large."
