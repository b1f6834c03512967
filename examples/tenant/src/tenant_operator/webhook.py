"""What a Tenant must not be: rules that its schema cannot express."""

from collections.abc import Iterator

from konverge.webhooks import AdmissionRequest, Deny, validating
from tenant_operator.api import Tenant

KEEP = "example.com/keep"


@validating(Tenant, operations=("CREATE", "UPDATE", "DELETE"))
def check(tenant: Tenant, old: Tenant | None, request: AdmissionRequest) -> Iterator[Deny | str]:
    """Deny tenants without a valid contact, changes of the owner, and the deletion of protected tenants."""
    if request.operation == "DELETE":
        if tenant.metadata.annotations.get(KEEP) == "true":
            yield Deny(f"it is protected: remove the annotation {KEEP} first")
        return
    if old is not None and old.spec.owner != tenant.spec.owner:
        yield Deny("the owner cannot be changed", path=".spec.owner")
    for number, contact in enumerate(tenant.spec.contacts):
        if "@" not in contact:
            yield Deny("a contact needs an @", path=f".spec.contacts[{number}]")
    if not tenant.spec.contacts:
        yield "nobody is told when this tenant is suspended: add a contact"
