"""The API events.k8s.io/v1, as Kubernetes v1.36.4 publishes it.

Made by `make generate` from the OpenAPI v3 description that the server publishes (Kubernetes, Apache-2.0; see
NOTICE). Do not edit.
"""

from __future__ import annotations

from datetime import datetime

from konverge.k8s.core.v1 import EventSource, ObjectReference
from konverge.objects.kinds import Kind
from konverge.objects.models import Model
from konverge.objects.resources import Resource
from konverge.objects.times import MicroTime

__all__ = ["Event", "EventSeries"]


class EventSeries(Model):
    """EventSeries contain information on series of events, i.e. thing that was/is happening continuously for some
    time. How often to update the EventSeries is up to the event reporters. The default event reporter in
    "k8s.io/client-go/tools/events/event_broadcaster.go" shows how this struct is updated on heartbeats and can
    guide customized reporter implementations.
    """

    count: int
    """count is the number of occurrences in this series up to the last heartbeat time."""

    last_observed_time: MicroTime | None = None
    """lastObservedTime is the time when last Event from the series was seen before last heartbeat."""


class Event(Resource, identity=Kind("events.k8s.io", "v1", "Event", "events")):
    """Event is a report of an event somewhere in the cluster. It generally denotes some state change in the system.
    Events have a limited retention time and triggers and messages may evolve with time. Event consumers should not
    rely on the timing of an event with a given Reason reflecting a consistent underlying trigger, or the continued
    existence of events with that Reason. Events should be treated as informative, best-effort, supplemental data.
    """

    action: str | None = None
    """action is what action was taken/failed regarding to the regarding object. It is machine-readable. This field
    cannot be empty for new Events and it can have at most 128 characters.
    """

    deprecated_count: int | None = None
    """deprecatedCount is the deprecated field assuring backward compatibility with core.v1 Event type."""

    deprecated_first_timestamp: datetime | None = None
    """deprecatedFirstTimestamp is the deprecated field assuring backward compatibility with core.v1 Event type."""

    deprecated_last_timestamp: datetime | None = None
    """deprecatedLastTimestamp is the deprecated field assuring backward compatibility with core.v1 Event type."""

    deprecated_source: EventSource | None = None
    """deprecatedSource is the deprecated field assuring backward compatibility with core.v1 Event type."""

    event_time: MicroTime | None = None
    """eventTime is the time when this Event was first observed. It is required."""

    note: str | None = None
    """note is a human-readable description of the status of this operation. Maximal length of the note is 1kB, but
    libraries should be prepared to handle values up to 64kB.
    """

    reason: str | None = None
    """reason is why the action was taken. It is human-readable. This field cannot be empty for new Events and it can
    have at most 128 characters.
    """

    regarding: ObjectReference | None = None
    """regarding contains the object this Event is about. In most cases it's an Object reporting controller implements,
    e.g. ReplicaSetController implements ReplicaSets and this event is emitted because it acts on some changes in a
    ReplicaSet object.
    """

    related: ObjectReference | None = None
    """related is the optional secondary object for more complex actions. E.g. when regarding object triggers a
    creation or deletion of related object.
    """

    reporting_controller: str | None = None
    """reportingController is the name of the controller that emitted this Event, e.g. `kubernetes.io/kubelet`. This
    field cannot be empty for new Events.
    """

    reporting_instance: str | None = None
    """reportingInstance is the ID of the controller instance, e.g. `kubelet-xyzf`. This field cannot be empty for new
    Events and it can have at most 128 characters.
    """

    series: EventSeries | None = None
    """series is data about the Event series this event represents or nil if it's a singleton Event."""

    type: str | None = None
    """type is the type of this event (Normal, Warning), new types could be added in the future. It is
    machine-readable. This field cannot be empty for new Events.
    """
