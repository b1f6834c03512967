"""The custom resources Tenant (v1) and Profile, both cluster-scoped."""

from typing import Annotated

from konverge import Condition, CustomResource, Meta, Spec, Status, field
from konverge.objects import Scope
from konverge.schema import AGE, Column

GROUP = "example.com"


class TenantSpec(Spec):
    """The desired state of a tenant."""

    owner: Annotated[str, Meta(min_length=1)]
    """Who pays; it cannot be changed."""
    profile: Annotated[str, Meta(min_length=1)]
    """The name of the Profile that sets the quota."""
    registry: str | None = None
    """The name of a Secret in the namespace tenant-system with the user of the image registry."""
    contacts: Annotated[list[str], Meta(max_length=10)] = field(default_factory=list[str])
    """Addresses for notices."""


class TenantStatus(Status):
    """The observed state of a tenant."""

    observed_generation: int = 0
    namespace: str = ""
    suspended: bool = False
    conditions: list[Condition] = field(default_factory=list[Condition])


class Tenant(
    CustomResource[TenantSpec, TenantStatus],
    group=GROUP,
    version="v1",
    scope=Scope.CLUSTER,
    columns=(Column("Profile", ".spec.profile"), Column("Namespace", ".status.namespace"), AGE),
):
    """A team with a namespace and a quota."""


class ProfileSpec(Spec):
    """What a tenant may use."""

    pods: Annotated[int, Meta(ge=0)] = 10
    cpu: str = "4"
    memory: str = "8Gi"


class Profile(CustomResource[ProfileSpec], group=GROUP, version="v1", scope=Scope.CLUSTER):
    """A quota that many tenants share."""
