"""THE MIRROR: reflectors that follow collections, stores that keep them, and the cache that shares them.

    async with Cache(client.collection, server=client) as cache:
        pods = cache.declare(Pod, CacheOptions(namespaces=("shop",)))
        pods.add_index("node", ".spec.nodeName")
        await cache.wait_for_sync(timeout=60)
        here = pods.find("node", "node-1")

The rules of what a reader sees and who is told are in `konverge.cache.store`.
"""

from konverge.cache.backoff import Patience
from konverge.cache.cache import Cache, CacheStats, ServerReader
from konverge.cache.entries import Entry
from konverge.cache.events import Event, EventType, Subscriber
from konverge.cache.indexes import by_function, by_path
from konverge.cache.informers import InformerStats, SourceOf
from konverge.cache.listers import View
from konverge.cache.options import CacheOptions
from konverge.cache.reflector import Reflector
from konverge.cache.reflector_stats import ReflectorStats, State
from konverge.cache.sink import Sink
from konverge.cache.source import Source
from konverge.cache.store import Store, StoreStats
from konverge.cache.streams import EventStream

__all__ = [
    "Cache",
    "CacheOptions",
    "CacheStats",
    "Entry",
    "Event",
    "EventStream",
    "EventType",
    "InformerStats",
    "Patience",
    "Reflector",
    "ReflectorStats",
    "ServerReader",
    "Sink",
    "Source",
    "SourceOf",
    "State",
    "Store",
    "StoreStats",
    "Subscriber",
    "View",
    "by_function",
    "by_path",
]
