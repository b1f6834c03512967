"""The cache: reflectors that list and watch collections, stores that hold them, and listers that read them.

    async with Cache(client.collection, server=client) as cache:
        pods = cache.declare(Pod, CacheOptions(namespaces=("shop",)))
        pods.add_index("node", ".spec.nodeName")
        await cache.wait_for_sync(timeout=60)
        found = pods.find("node", "node-1")

The rules for what readers see and which events are reported are in `konverge.cache.store`.
"""

from konverge.cache.cache import Cache, CacheStats, ServerReader
from konverge.cache.entries import Entry
from konverge.cache.events import Event, EventHandler, EventType
from konverge.cache.indexes import IndexFunc, by_function, by_path
from konverge.cache.informers import InformerStats, SourceFactory
from konverge.cache.listers import Lister
from konverge.cache.options import CacheOptions, ReflectorOptions
from konverge.cache.reflector import Reflector
from konverge.cache.reflector_stats import ReflectorState, ReflectorStats
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
    "EventHandler",
    "EventStream",
    "EventType",
    "IndexFunc",
    "InformerStats",
    "Lister",
    "Reflector",
    "ReflectorOptions",
    "ReflectorState",
    "ReflectorStats",
    "ServerReader",
    "Sink",
    "Source",
    "SourceFactory",
    "Store",
    "StoreStats",
    "by_function",
    "by_path",
]
