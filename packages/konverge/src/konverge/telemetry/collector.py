"""How things stand at the moment of a scrape: queues, caches, leases and events, read from their figures."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from konverge.telemetry.snapshots import CacheSnapshot, ControllerSnapshot, EventSnapshot, LeaseSnapshot, Sources

if TYPE_CHECKING:
    from prometheus_client import Metric

__all__ = ["MetricsCollector", "counter", "gauge"]

_log = logging.getLogger("konverge.telemetry")

T = TypeVar("T")

Samples = Iterable[tuple[tuple[str, ...], float]]

_STATES = ("idle", "listing", "opening", "watching", "waiting", "stopped")
_TRIES = 3


class MetricsCollector:
    """Reads the sources and makes metrics of them; a source that fails gives nothing, and that is counted."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._failures = 0

    def collect(self) -> Iterator[Metric]:
        """Read everything."""
        yield from _of_controllers(self.controllers())
        yield from _of_caches(self._read(self._sources.caches))
        yield from _of_leases(self.leases())
        yield from _of_events(self._looked(self._sources.events, None))
        yield counter("konverge_collect_failures", "Figures that could not be read", (), [((), self._failures)])

    def controllers(self) -> list[ControllerSnapshot]:
        """Read the controllers."""
        return self._read(self._sources.controllers)

    def leases(self) -> list[LeaseSnapshot]:
        """Read the leases."""
        return self._read(self._sources.leases)

    def _read(self, source: Callable[[], Iterable[T]]) -> list[T]:
        return self._looked(lambda: list(source()), [])

    def _looked(self, look: Callable[[], T], otherwise: T) -> T:
        for attempt in range(1, _TRIES + 1):
            try:
                return look()
            except RuntimeError:
                # A dict that changed size while another thread looked at it: look once more.
                if attempt == _TRIES:
                    self._fail()
            except Exception:
                self._fail()
                break
        return otherwise

    def _fail(self) -> None:
        self._failures += 1
        _log.debug("Figures for metrics could not be read", exc_info=True)


def gauge(name: str, text: str, labels: tuple[str, ...], samples: Samples) -> Metric:
    """Make a gauge of its samples."""
    from prometheus_client.core import GaugeMetricFamily

    return _filled(GaugeMetricFamily(name, text, labels=labels), samples)


def counter(name: str, text: str, labels: tuple[str, ...], samples: Samples) -> Metric:
    """Make a counter of its samples; the name is without `_total`."""
    from prometheus_client.core import CounterMetricFamily

    return _filled(CounterMetricFamily(name, text, labels=labels), samples)


def _filled(family: Any, samples: Samples) -> Metric:
    for labels, value in samples:
        family.add_metric(labels, value)
    filled: Metric = family
    return filled


def _of_controllers(found: list[ControllerSnapshot]) -> Iterator[Metric]:
    own = ("controller",)
    # Both labels, since controller-runtime calls the queue by `name`: one metric serves either.
    yield gauge("workqueue_depth", "Keys in line", ("controller", "name"), [((c.name, c.name), c.ready) for c in found])
    yield gauge("konverge_queue_delayed", "Keys that are due later", own, [((c.name,), c.delayed) for c in found])
    yield gauge(
        "konverge_queue_oldest_wait_seconds",
        "How long the first key has been in line",
        own,
        [((c.name,), c.oldest_wait) for c in found],
    )
    yield counter("konverge_queue_adds", "Keys put in line", own, [((c.name,), c.adds) for c in found])
    yield counter("konverge_queue_retries", "Keys that backed off", own, [((c.name,), c.retries) for c in found])
    yield gauge(
        "konverge_longest_running_reconcile_seconds",
        "How long the longest reconcile has been running",
        own,
        [((c.name,), c.longest_running) for c in found],
    )
    yield gauge(
        "konverge_unfinished_work_seconds",
        "How long all running reconciles have been running, added up",
        own,
        [((c.name,), c.unfinished) for c in found],
    )
    yield gauge("konverge_active_workers", "Workers that reconcile", own, [((c.name,), c.busy) for c in found])
    yield gauge("konverge_workers", "Workers there are", own, [((c.name,), c.workers) for c in found])


def _of_caches(found: list[CacheSnapshot]) -> Iterator[Metric]:
    labels = ("kind", "namespace")

    def each(value: Callable[[CacheSnapshot], float]) -> Samples:
        # Two collections of one kind and namespace (other selectors) are one line: a label twice is an error.
        sums: dict[tuple[str, str], float] = {}
        for one in found:
            place = (one.kind, one.namespace)
            sums[place] = sums.get(place, 0.0) + value(one)
        return sums.items()

    def worst(value: Callable[[CacheSnapshot], float]) -> Samples:
        most: dict[tuple[str, str], float] = {}
        for one in found:
            place = (one.kind, one.namespace)
            most[place] = max(most.get(place, 0.0), value(one))
        return most.items()

    yield gauge("konverge_cache_objects", "Objects in the cache", labels, each(lambda c: c.objects))
    yield gauge("konverge_cache_bytes", "Bytes of objects in the cache", labels, each(lambda c: c.bytes))
    yield gauge("konverge_cache_not_synced", "Collections without a first list", labels, each(lambda c: not c.synced))
    yield gauge(
        "konverge_watch_idle_seconds", "How long ago the server was last heard", labels, worst(lambda c: c.silent)
    )
    yield counter("konverge_reflector_watches", "Watches opened", labels, each(lambda c: c.watches))
    yield counter("konverge_reflector_lists", "Lists made", labels, each(lambda c: c.lists))
    yield counter("konverge_reflector_failures", "Lists and watches that failed", labels, each(lambda c: c.failures))
    states: dict[tuple[str, str, str], float] = {}
    for one in found:
        for state in dict.fromkeys((*_STATES, one.state)):
            place = (one.kind, one.namespace, state)
            states[place] = states.get(place, 0.0) + (state == one.state)
    yield gauge("konverge_reflector_state", "What each reflector is doing", (*labels, "state"), states.items())


def _of_leases(found: list[LeaseSnapshot]) -> Iterator[Metric]:
    samples = [((lease.name,), float(lease.held)) for lease in found]
    yield gauge("konverge_leader", "Whether this process holds the lease", ("lease",), samples)


def _of_events(found: EventSnapshot | None) -> Iterator[Metric]:
    if found is None:
        return
    yield counter("konverge_events_written", "Events on the server", (), [((), found.written)])
    dropped = [((why,), count) for why, count in found.dropped.items()]
    yield counter("konverge_events_dropped", "Events that were not written", ("reason",), dropped)
