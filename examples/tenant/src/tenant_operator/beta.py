"""Tenant v1beta1: the profile is called plan, and there is at most one contact."""

from konverge import CustomResource, Spec
from konverge.objects import Scope
from konverge.webhooks import AnnotationValue, ConversionWebhook, Converter
from tenant_operator.api import GROUP, Tenant, TenantSpec, TenantStatus


class BetaTenantSpec(Spec):
    """The desired state of a tenant."""

    owner: str
    plan: str
    registry: str | None = None
    contact: str | None = None


class BetaTenant(
    CustomResource[BetaTenantSpec, TenantStatus],
    group=GROUP,
    version="v1beta1",
    kind="Tenant",
    scope=Scope.CLUSTER,
    storage=False,
    deprecated="example.com/v1beta1 Tenant is deprecated; use v1",
):
    """A team with a namespace and a quota, version v1beta1."""


MORE_CONTACTS = AnnotationValue("example.com/more-contacts", list[str])


def up(old: BetaTenant) -> Tenant:
    """Return the v1 object; contacts after the first come from the annotation."""
    more = MORE_CONTACTS.pop(old) or []
    contacts = [old.spec.contact, *more] if old.spec.contact is not None else more
    spec = TenantSpec(owner=old.spec.owner, profile=old.spec.plan, registry=old.spec.registry, contacts=contacts)
    return Tenant(metadata=old.metadata, spec=spec, status=old.status)


def down(new: Tenant) -> BetaTenant:
    """Return the v1beta1 object, with the contacts after the first in an annotation."""
    first, more = next(iter(new.spec.contacts), None), new.spec.contacts[1:]
    spec = BetaTenantSpec(owner=new.spec.owner, plan=new.spec.profile, registry=new.spec.registry, contact=first)
    old = BetaTenant(metadata=new.metadata, spec=spec, status=new.status)
    MORE_CONTACTS.put(old, more or None)
    return old


conversion = ConversionWebhook(Tenant, Converter(BetaTenant, Tenant, up, down))
