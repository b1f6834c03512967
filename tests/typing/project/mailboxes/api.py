"""The kind Mailbox, with every class keyword."""

from __future__ import annotations

from typing import Annotated, Literal

from konverge import Condition, CustomResource, Meta, Model, Spec, Status, field
from konverge.objects import Scope
from konverge.schema import AGE, Column, Rule, Scale


class Alias(Spec, atomic=True):
    address: str
    enabled: bool = True


class MailboxSpec(Spec, rules=(Rule("self.quota >= 1", message="the quota is at least 1"),)):
    image: str
    replicas: Annotated[int, Meta(ge=0, le=3)] = 1
    quota: int = 10
    plan: Literal["free", "paid"] = "free"
    secret: str | None = None
    aliases: list[Alias] = field(default_factory=list[Alias])
    limits: dict[str, int] = field(default_factory=dict)


class MailboxStatus(Status):
    replicas: int = 0
    conditions: list[Condition] = field(default_factory=list)


class Mailbox(
    CustomResource[MailboxSpec, MailboxStatus],
    group="mail.example.com",
    version="v1",
    kind="Mailbox",
    plural="mailboxes",
    singular="mailbox",
    list_kind="MailboxList",
    short_names=("mb",),
    categories="mail",
    scope=Scope.NAMESPACED,
    columns=(Column("Replicas", ".status.replicas"), AGE),
    selectable=[".spec.image"],
    scale=Scale(status_replicas=".status.replicas"),
    status=True,
    storage=True,
    served=True,
    deprecated=False,
    rules=(),
):
    """A mailbox and the server that holds it."""


class DomainSpec(Spec):
    name: str


class Domain(CustomResource[DomainSpec], group="mail.example.com", version="v1", scope="Cluster"):
    """A kind without a status."""


class Address(Model, frozen=True):
    """A value that is no object."""

    local: str
    domain: str
