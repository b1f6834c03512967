"""Triggers: which changes matter (predicates), which keys they enqueue (mappers), and other sources of keys.

    controller_for(WebApp)
        .predicate(generation_changed | labels_changed)
        .watches(Secret, to_keys(apps_of, Secret), predicate=has_labels("app") & ~in_namespaces("kube-system"))

All of these are plain synchronous functions: nothing waits between a change in the cache and its key in the queue.
"""

from konverge.triggers.channels import Channel
from konverge.triggers.handlers import EnqueueRequest, Trigger, TriggerHandler
from konverge.triggers.mappers import Mapper, to_keys, to_owner, to_referring, to_self
from konverge.triggers.predicates import (
    Predicate,
    annotations_changed,
    anything,
    deletion_started,
    field_changed,
    generation_changed,
    has_labels,
    in_namespaces,
    labels_changed,
    resource_version_changed,
    spec_or_metadata_changed,
)
from konverge.triggers.readers import CacheReader
from konverge.triggers.reasons import EnqueueReason
from konverge.triggers.timers import Timer

__all__ = [
    "CacheReader",
    "Channel",
    "EnqueueReason",
    "EnqueueRequest",
    "Mapper",
    "Predicate",
    "Timer",
    "Trigger",
    "TriggerHandler",
    "annotations_changed",
    "anything",
    "deletion_started",
    "field_changed",
    "generation_changed",
    "has_labels",
    "in_namespaces",
    "labels_changed",
    "resource_version_changed",
    "spec_or_metadata_changed",
    "to_keys",
    "to_owner",
    "to_referring",
    "to_self",
]
