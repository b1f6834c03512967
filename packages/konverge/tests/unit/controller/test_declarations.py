"""The declaration of a controller as a whole: its permissions, its cache options, its limiters and its defaults."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gadgets import Gadget
from konverge import Context, Key, Reconciler, controller_for
from konverge.cache import CacheOptions
from konverge.client import WriteEvent
from konverge.controller import EVENTS, LEASES, Permission
from konverge.controller.enqueue_filter import EnqueueFilter
from konverge.k8s.core.v1 import ConfigMap, Namespace, Secret
from konverge.objects import Kind, kind_of
from konverge.queue import Backoff, Priority, WorkQueue
from konverge.reconcile import EnqueueEvent, Observers, ReconcileObserver
from konverge.triggers import EnqueueReason, EnqueueRequest, anything, spec_or_metadata_changed
from konverge.triggers.mappers import ToReferring

GROUP = "test.konverge.dev"


async def nothing(obj: Any, ctx: Context) -> None: ...


def no_keys(_: object) -> tuple[Key, ...]:
    return ()


class Finalizing(Reconciler[Gadget]):
    """Has a finalizer."""

    finalizer = "example.com/gadget"

    async def reconcile(self, obj: Gadget, ctx: Context) -> None: ...


def gadgets(*verbs: str, subresource: str = "") -> list[Permission]:
    return [Permission(GROUP, "gadgets", subresource, verb) for verb in verbs]


def on(resource: str, *verbs: str, name: str = "") -> list[Permission]:
    return [Permission("", resource, "", verb, name) for verb in verbs]


# Permissions


def test_the_permissions_of_the_recorder_and_of_leader_election() -> None:
    assert [str(one) for one in EVENTS] == ["create on events.events.k8s.io", "patch on events.events.k8s.io"]
    leases = "leases.coordination.k8s.io"
    assert [str(one) for one in LEASES] == [f"create on {leases}", f"get on {leases}", f"update on {leases}"]


def test_the_permissions_of_a_plain_controller() -> None:
    built = controller_for(Gadget).build(nothing)
    assert built.permissions() == (*gadgets("list", "watch"), *gadgets("patch", subresource="status"))
    assert built.applied_kinds() == frozenset()


def test_the_permissions_of_a_controller_with_a_finalizer() -> None:
    built = controller_for(Gadget).build(Finalizing())
    expected = [*gadgets("get", "list", "patch", "watch"), *gadgets("patch", subresource="status")]
    assert built.permissions() == tuple(expected)
    assert built.applied_kinds() == {(GROUP, "gadgets")}


def test_the_permissions_of_a_controller_that_owns_and_watches_kinds() -> None:
    built = controller_for(Gadget).owns(ConfigMap).watches(Secret, no_keys).build(nothing)
    assert built.permissions() == (
        *on("configmaps", "create", "delete", "get", "list", "patch", "watch"),
        *on("secrets", "list", "watch"),
        *gadgets("get", "list", "watch"),
        *gadgets("update", subresource="finalizers"),
        *gadgets("patch", subresource="status"),
    )
    assert built.applied_kinds() == {("", "configmaps")}


def test_declared_needs_are_permissions_and_patch_is_an_apply() -> None:
    builder = (
        controller_for(Gadget).needs(Secret, "patch", names=("a",)).needs(ConfigMap, "patch", subresource="status")
    )
    built = builder.build(nothing)
    assert built.applied_kinds() == {("", "secrets")}
    assert set(built.needs) <= set(built.permissions())


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ("metadata.name=a", "a"),
        ("spec.x=y,metadata.name=a", "a"),
        ("metadata.name!=a", ""),
        ("spec.x=y", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_a_field_selector_by_name_limits_list_and_watch(fields: str | None, name: str) -> None:
    options = CacheOptions(fields=fields)
    built = controller_for(Gadget).read_only().watches(Secret, no_keys, options=options).build(nothing)
    assert built.permissions() == (*on("secrets", "list", "watch", name=name), *gadgets("list", "watch"))


def test_the_options_of_a_cluster_scoped_kind_name_no_namespaces() -> None:
    options = CacheOptions(labels="app=web", namespaces=("shop",))
    builder = controller_for(Gadget).watches(Namespace, no_keys).watches(Namespace, no_keys, options=options)
    built = builder.watches(Secret, no_keys, options=options).watches(ConfigMap, no_keys).build(nothing)
    assert [built.options_of(one) for one in built.triggers] == [
        None,
        CacheOptions(namespaces=()),
        CacheOptions(namespaces=(), labels="app=web"),
        options,
        None,
    ]


# The builder


def test_by_default_changes_of_other_kinds_always_enqueue_and_those_of_a_status_do_not() -> None:
    built = controller_for(Gadget).owns(ConfigMap).watches(Secret, no_keys).build(nothing)
    assert [one.predicate for one in built.triggers] == [spec_or_metadata_changed, anything, anything]
    assert [one.options for one in built.triggers] == [None] * 3


def test_a_controller_for_a_kind_without_a_class_has_its_name() -> None:
    lamp = Kind("example.com", "v1", "Lamp", "lamps")
    builder = controller_for(lamp).owns(Kind("example.com", "v1", "Bulb", "bulbs"))
    built = builder.watches(Kind("example.com", "v1", "Socket", "sockets"), no_keys).build(nothing)
    assert (built.name, built.type, built.kind) == ("lamp", lamp, lamp)
    assert [one.name for one in built.triggers] == ["for Lamp", "owns Bulb", "watches Socket"]
    assert repr(controller_for(lamp)) == "controller_for(Lamp)"


def test_a_second_trigger_with_the_same_name_has_a_number() -> None:
    built = controller_for(Gadget).owns(ConfigMap).watches(Secret, no_keys).owns(ConfigMap).owns(Gadget).build(nothing)
    names = ["for Gadget", "owns ConfigMap", "watches Secret", "owns ConfigMap (3)", "owns Gadget"]
    assert [one.name for one in built.triggers] == names


def test_each_run_of_a_controller_has_a_new_rate_limiter() -> None:
    backoff = Backoff(base_delay=7.0, jitter=0.0)
    built = controller_for(Gadget).backoff(backoff).build(nothing)
    first, second = built.rate_limiter(), built.rate_limiter()
    assert first is not second
    default = controller_for(Gadget).build(nothing)
    assert type(default.rate_limiter()) is type(first)


def test_the_builder_decorates_functions() -> None:
    built = controller_for(Gadget).named("lamps")(nothing)
    assert (built.name, built.type) == ("lamps", Gadget)
    with pytest.raises(TypeError, match=r"^controller_for\(Gadget\) decorates functions: for a Reconciler, use"):
        controller_for(Gadget)(7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("needs", "fields"),
    [
        ((("list", "watch"), ("a",)), "metadata.name=a"),
        ((("list",), ("a",)), "metadata.name=a"),
        ((("watch",), ("a",)), "metadata.name=a"),
        ((("get",), ("a",)), None),
        ((("list", "watch"), ()), None),
    ],
)
def test_a_name_for_list_or_watch_selects_one_object(
    needs: tuple[tuple[str, ...], tuple[str, ...]], fields: str | None
) -> None:
    verbs, names = needs
    builder = controller_for(Gadget).watches(Secret, no_keys).watches(ConfigMap, no_keys)
    built = builder.needs(Secret, *verbs, names=names).build(nothing)
    _, secrets, maps = built.triggers
    assert (secrets.options.fields if secrets.options else None) == fields
    assert maps.options is None


def test_two_names_for_list_select_nothing() -> None:
    builder = controller_for(Gadget).watches(Secret, no_keys).needs(Secret, "list", names=("a",))
    built = builder.needs(Secret, "list", names=("b",)).build(nothing)
    assert built.triggers[1].options is None


def test_an_index_of_another_kind_or_name_is_not_that_of_a_mapper() -> None:
    def build(builder: Any) -> str:
        try:
            builder.build(nothing)
        except ValueError as error:
            return str(error)
        return ""

    mapper = ToReferring(kind_of(Gadget), "secret")
    needed = f"watches Secret: {mapper!r} needs an index: add .index(Gadget, 'secret', \".spec.<field with the name>\")"
    assert build(controller_for(Gadget).watches(Secret, mapper).index(Gadget, "other", ".spec.text")) == needed
    assert build(controller_for(Gadget).watches(Secret, mapper).index(Secret, "secret", ".spec.text")) == needed
    assert build(controller_for(Gadget).watches(Secret, mapper).index(Gadget, "secret", ".spec.text")) == ""
    unread = controller_for(ConfigMap).watches(Secret, mapper)
    assert build(unread) == f"watches Secret: {mapper!r} reads Gadget: declare it with .watches()"


# The enqueue filter


class Events(ReconcileObserver):
    """Records the events of keys that were enqueued."""

    def __init__(self) -> None:
        self.found: list[EnqueueEvent] = []

    def enqueue(self, event: EnqueueEvent) -> None:
        self.found.append(event)


async def test_a_request_is_enqueued_with_all_it_says() -> None:
    events, queue = Events(), WorkQueue[Key](backoff=Backoff(base_delay=60, jitter=0))
    enqueue_filter = EnqueueFilter("gadget", queue, Observers(events))
    first, second = Key("default", "first"), Key("default", "second")
    reason = EnqueueReason("for Gadget", "Gadget", first, "7", "updated")
    await asyncio.sleep(3)
    enqueue_filter.add(EnqueueRequest(first, reason, Priority.LOW, False))
    enqueue_filter.add_key(second, reason)
    assert events.found == [EnqueueEvent("gadget", first, reason, 3.0), EnqueueEvent("gadget", second, reason, 3.0)]
    assert [await queue.get(), await queue.get()] == [second, first], "by priority"
    assert queue._in_flight[second].priority is Priority.NORMAL
    queue.retry(first)
    queue.done(first)
    enqueue_filter.add(EnqueueRequest(first, reason, Priority.HIGH, True))
    assert queue.failures(first) == 0, "new input"
    assert await queue.get() == first
    assert queue._in_flight[first].priority is Priority.HIGH


async def test_a_held_request_is_enqueued_with_all_it_says() -> None:
    events, queue = Events(), WorkQueue[Key]()
    enqueue_filter = EnqueueFilter("gadget", queue, Observers(events))
    key, child = Key("default", "a"), Key("default", "child")
    enqueue_filter.begin(key)
    await asyncio.sleep(3)
    reasons = [EnqueueReason("owns ConfigMap", kind, child, "7", "updated") for kind in ("ConfigMap", "Secret")]
    for reason in reasons:
        enqueue_filter.add(EnqueueRequest(key, reason, Priority.HIGH, False))
    response = b'{"metadata":{"name":"child","namespace":"default","resourceVersion":"7"}}'
    enqueue_filter.record_write(key, WriteEvent("create", kind_of(ConfigMap), child, response, created=True))
    assert events.found == []
    await asyncio.sleep(2)
    enqueue_filter.end(key)
    assert events.found == [EnqueueEvent("gadget", key, reasons[1], 3.0)], "the write was that of the other kind"
    assert await queue.get() == key
    assert queue._in_flight[key].priority is Priority.HIGH


async def test_a_timer_or_a_channel_is_no_new_input_of_a_failing_key() -> None:
    queue = WorkQueue[Key](backoff=Backoff(base_delay=60, jitter=0))
    enqueue_filter = EnqueueFilter("gadget", queue, Observers())
    key = Key("default", "a")
    queue.add(key)
    await queue.get()
    queue.retry(key)
    queue.done(key)
    enqueue_filter.add_key(key, EnqueueReason("orders", "", key, "", "channel"))
    assert queue.failures(key) == 1
