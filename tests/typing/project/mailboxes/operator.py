"""The operator: controllers, webhooks, predicates and mappers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from konverge import Key, controller_for
from konverge.cache import Event, by_function
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import ConfigMap, Secret
from konverge.manager import Operator
from konverge.triggers import (
    CacheReader,
    Predicate,
    generation_changed,
    has_labels,
    labels_changed,
    to_keys,
    to_referring,
)
from konverge.webhooks import AdmissionRequest, Deny, mutating, validating
from mailboxes.api import Domain, Mailbox
from mailboxes.reconciler import MailboxReconciler, count_mailboxes, log_domain


def mailboxes_of(secret: Secret) -> Iterable[Key]:
    return [Key(secret.namespace, name) for name in secret.metadata.annotations]


def mailboxes_with(config: ConfigMap, reader: CacheReader) -> Iterable[Key]:
    return [mailbox.key for mailbox in reader.find(Mailbox, "image", config.data.get("image", ""))]


def images_of(mailbox: Mailbox) -> Iterable[str]:
    return [mailbox.spec.image]


def of_the_system(event: Event) -> bool:
    return event.key.namespace == "mail-system"


@validating(Mailbox)
def check(mailbox: Mailbox, old: Mailbox | None, request: AdmissionRequest) -> Iterator[Deny | str]:
    if ":" not in mailbox.spec.image:
        yield Deny("an image needs a tag", path=".spec.image")
    if old is not None and old.spec.plan != mailbox.spec.plan:
        yield f"{request.user.name} changes the plan"


@mutating(Mailbox)
def fill_in(mailbox: Mailbox, old: Mailbox | None, request: AdmissionRequest) -> None:
    mailbox.metadata.labels.setdefault("mailbox", mailbox.name)


mailboxes = (
    controller_for(Mailbox)
    .predicate(generation_changed | labels_changed)
    .owns(Deployment)
    .owns(ConfigMap, predicate=~has_labels("ignored"))
    .watches(Secret, to_keys(mailboxes_of, Secret), predicate=Predicate(of_the_system))
    .watches(Secret, to_referring(Mailbox, index="secret"))
    .watches(ConfigMap, to_keys(mailboxes_with, ConfigMap))
    .index(Mailbox, "secret", ".spec.secret")
    .index(Mailbox, "image", ".spec.image")
    .build(MailboxReconciler())
)
domains = controller_for(Domain).index(Mailbox, "image", by_function(Mailbox, images_of)).build(count_mailboxes)
logged = controller_for(Domain).named("logged").build(log_domain)

operator = Operator(
    name="mail-operator",
    kinds=(Mailbox, Domain),
    controllers=(mailboxes, domains, logged),
    webhooks=(check, fill_in),
)
