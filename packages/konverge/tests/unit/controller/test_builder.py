"""The builder of a controller: what each part sets, limits at their exact values, and errors that say what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from gadgets import Gadget
from konverge import Context, Key, Reconciler, controller_for
from konverge.cache import CacheOptions, Event
from konverge.controller import Permission
from konverge.controller.permissions import permissions_on, rules_of
from konverge.k8s.core.v1 import ConfigMap, Secret
from konverge.k8s.rbac.v1 import ClusterRole
from konverge.objects import kind_of
from konverge.queue import RateLimit
from konverge.triggers import Channel, generation_changed, to_referring


async def nothing(obj: Any, ctx: Context) -> None: ...


def test_the_parts_of_a_controller_are_those_of_its_builder() -> None:
    channel, options, rate = Channel("orders"), CacheOptions(), RateLimit(1, 1)

    def keys() -> list[Key]:
        return []

    def mapper(_: Event) -> list[Key]:
        return []

    builder = (
        controller_for(Gadget)
        .named("lamps")
        .predicate(generation_changed)
        .options(options)
        .resync(60)
        .owns(ConfigMap, predicate=generation_changed, options=options, resync=61)
        .watches(Secret, mapper, predicate=generation_changed, options=options, resync=62)
        .channel(channel)
        .every(63, keys)
        .index(ConfigMap, "app", ".data.app")
        .max_concurrent_reconciles(7)
        .rate(rate)
        .timeout(64)
        .cache_sync_timeout(65)
        .needs(ClusterRole, "bind", "escalate", names=("view", "edit"))
    )
    built = builder.build(nothing)
    own, owned, watched = built.triggers
    assert (built.name, built.type, built.kind) == ("lamps", Gadget, kind_of(Gadget))
    assert [one.name for one in built.triggers] == ["for Gadget", "owns ConfigMap", "watches Secret"]
    assert [one.kind for one in built.triggers] == [Gadget, ConfigMap, Secret]
    assert [one.resync for one in built.triggers] == [60, 61, 62]
    assert [one.predicate for one in built.triggers] == [generation_changed] * 3
    assert [one.options for one in built.triggers] == [options] * 3
    assert (own.primary, owned.primary, watched.primary) == (True, False, False)
    assert (own.owned, owned.owned, watched.owned) == (False, True, False)
    assert watched.mapper is mapper
    assert (built.channels, built.indexes) == ((channel,), ((ConfigMap, "app", ".data.app"),))
    assert [repr(one) for one in built.timers] == ["every 63 s"]
    assert (built.max_concurrent_reconciles, built.rate) == (7, rate)
    assert (built.timeout, built.cache_sync_timeout, built.read_only) == (64, 65, False)
    assert [str(one) for one in built.needs] == [
        f"{verb} on clusterroles.rbac.authorization.k8s.io {name}"
        for verb in ("bind", "escalate")
        for name in ("view", "edit")
    ]


def test_a_controller_has_these_parts_by_default() -> None:
    built = controller_for(Gadget).owns(ConfigMap).owns(ConfigMap).owns(ConfigMap).build(nothing)
    assert (built.name, built.max_concurrent_reconciles, built.timeout) == ("gadget", 16, 60)
    assert (built.cache_sync_timeout, built.rate, built.read_only) == (None, None, False)
    assert (built.channels, built.timers, built.indexes, built.needs) == ((), (), (), ())
    names = ["for Gadget", "owns ConfigMap", "owns ConfigMap (2)", "owns ConfigMap (3)"]
    assert [one.name for one in built.triggers] == names
    assert [one.resync for one in built.triggers] == [None] * 4
    assert repr(controller_for(Gadget)) == "controller_for(Gadget)"
    assert controller_for(Gadget).read_only().build(nothing).read_only


def test_a_name_limits_the_cache_of_a_watched_kind_to_one_object() -> None:
    builder = controller_for(Gadget).watches(Secret, lambda _: (), options=CacheOptions(labels="app=web"))
    limited = builder.needs(Secret, "list", "watch", names=("password",)).build(nothing).triggers[1]
    assert limited.options is not None
    assert (limited.options.fields, limited.options.labels) == ("metadata.name=password", "app=web")
    other = controller_for(Gadget).watches(Secret, lambda _: ()).needs(Secret, "get", names=("password",))
    assert other.build(nothing).triggers[1].options is None


class Finalizing(Reconciler[Gadget]):
    """Has a finalizer."""

    finalizer = "example.com/gadget"

    async def reconcile(self, obj: Gadget, ctx: Context) -> None: ...


Make = Callable[[], Any]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        *(
            (
                lambda name=name: controller_for(Gadget).named(name),
                ValueError,
                f"{name!r} is not a controller name: write a short name without a slash",
            )
            for name in ("", "a/b")
        ),
        (
            lambda: controller_for(Gadget).max_concurrent_reconciles(0),
            ValueError,
            "max_concurrent_reconciles is the number of workers, at least 1, got 0",
        ),
        *(
            (
                lambda name=name, wrong=wrong: getattr(controller_for(Gadget), name)(wrong),
                ValueError,
                f"{name} is a number of seconds greater than 0, got {wrong}",
            )
            for name in ("timeout", "cache_sync_timeout", "resync")
            for wrong in (0, -1)
        ),
        (
            lambda: controller_for(Gadget).owns(ConfigMap, resync=0),
            ValueError,
            "resync is a number of seconds greater than 0, got 0",
        ),
        (
            lambda: controller_for(Gadget).read_only().owns(ConfigMap).build(nothing),
            ValueError,
            "a read_only controller owns no kinds: write .watches() instead of .owns()",
        ),
        (
            lambda: controller_for(Gadget).read_only().build(Finalizing()),
            ValueError,
            "a read_only controller has no finalizer: it would have to write it",
        ),
        (
            lambda: controller_for(Gadget)(Finalizing()),  # type: ignore[arg-type]
            TypeError,
            "controller_for(Gadget) decorates functions: for a Reconciler, use .build(Finalizing())",
        ),
        (
            lambda: controller_for(Gadget)(Finalizing),  # type: ignore[arg-type]
            TypeError,
            "controller_for(Gadget) decorates functions: for a Reconciler, use .build(Finalizing())",
        ),
        (
            lambda: controller_for(Gadget).needs(Secret, "get", names=("a", "")),
            TypeError,
            "names is a tuple of names: write names=('one', 'two'), and names=('one',) for a single one",
        ),
        *(
            (
                lambda verb=verb: controller_for(Gadget).needs(Secret, verb, names=("a",)),
                ValueError,
                f"RBAC cannot limit {verb} to names, since the request has none: write .needs(Secret, {verb!r}) without"
                " names",
            )
            for verb in ("create", "deletecollection")
        ),
        *(
            (
                lambda verb=verb: controller_for(Gadget).needs(Secret, verb, names=("a", "b")),
                ValueError,
                f"{verb} is allowed by one name only: a field selector holds one, got ('a', 'b')",
            )
            for verb in ("list", "watch")
        ),
    ],
)
def test_a_mistake_is_an_error_that_says_what_to_write(make: Make, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        make()


def test_values_may_be_at_their_limits() -> None:
    builder = controller_for(Gadget).max_concurrent_reconciles(1).timeout(0.001).cache_sync_timeout(0.001).resync(0.001)
    built = builder.build(nothing)
    assert (built.max_concurrent_reconciles, built.timeout, built.cache_sync_timeout) == (1, 0.001, 0.001)
    controller_for(Gadget).needs(Secret, "create", subresource="token", names=("a",))
    controller_for(Gadget).needs(Secret, "create", "deletecollection")


def test_a_mapper_by_an_index_needs_it_and_the_kind() -> None:
    def message(builder: Any) -> str:
        with pytest.raises(ValueError) as caught:
            builder.build(nothing)
        return str(caught.value)

    referring = to_referring(Gadget, index="secret")
    assert message(controller_for(Gadget).watches(Secret, referring)) == (
        f"watches Secret: {referring!r} needs an index: add .index(Gadget, 'secret', \".spec.<field with the name>\")"
    )
    others = to_referring(ConfigMap, index="secret")
    expected = f"watches Secret: {others!r} reads ConfigMap: declare it with .watches()"
    assert message(controller_for(Gadget).watches(Secret, others)) == expected
    controller_for(Gadget).watches(Secret, referring).index(Gadget, "secret", ".spec.text").build(nothing)
    by_options = CacheOptions(indexes=(("secret", lambda _: ()),))
    controller_for(Gadget).options(by_options).watches(Secret, referring).build(nothing)


# Permissions


def test_a_permission_reads_as_a_text() -> None:
    assert str(Permission("", "pods", "", "get")) == "get on pods"
    assert str(Permission("apps", "deployments", "scale", "patch", "web")) == "patch on deployments.apps/scale web"


def test_the_permissions_on_a_kind_are_list_and_watch_by_default() -> None:
    secrets = kind_of(Secret)
    assert permissions_on(secrets) == [Permission("", "secrets", "", verb) for verb in ("list", "watch")]
    assert permissions_on(secrets, ("get",), "status", ("a", "b")) == [
        Permission("", "secrets", "status", "get", name) for name in ("a", "b")
    ]


def test_rules_have_one_group_and_one_set_of_verbs_each_and_those_with_names_come_last() -> None:
    wanted = [
        Permission("", "pods", "", "list"),
        Permission("", "pods", "", "get"),
        Permission("", "secrets", "", "get"),
        Permission("", "secrets", "", "list"),
        Permission("", "pods", "log", "get"),
        Permission("apps", "deployments", "", "get"),
        Permission("", "configmaps", "", "get", "b"),
        Permission("", "configmaps", "", "get", "a"),
        Permission("", "configmaps", "", "update", "c"),
    ]
    expected = [
        {"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"], "resourceNames": ["a", "b"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["update"], "resourceNames": ["c"]},
    ]
    assert rules_of(wanted) == rules_of([*reversed(wanted), *wanted]) == expected
