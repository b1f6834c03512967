"""lightkube: create, get, list, watch, patch, delete of a custom resource."""

import logging
import sys

from lightkube import Client, KubeConfig
from lightkube.generic_resource import create_namespaced_resource
from lightkube.types import PatchType

logging.basicConfig(level=logging.WARNING)
NAMESPACE = sys.argv[2]

client = Client(config=KubeConfig.from_file(sys.argv[1]))
Widget = create_namespaced_resource("peers.test", "v1", "Widget", "widgets")

made = client.create(Widget(metadata={"name": "lightkube"}, spec={"size": 1}), namespace=NAMESPACE)
assert made.spec == {"size": 1, "mode": "a"}, made.spec
assert client.get(Widget, "lightkube", namespace=NAMESPACE).metadata.uid == made.metadata.uid
assert [each.metadata.name for each in client.list(Widget, namespace=NAMESPACE)] == ["lightkube"]

patched = client.patch(Widget, "lightkube", {"spec": {"size": 2}}, namespace=NAMESPACE, patch_type=PatchType.MERGE)
assert patched.spec["size"] == 2
applied = client.apply(
    Widget(metadata={"name": "lightkube", "namespace": NAMESPACE}, spec={"mode": "b"}),
    field_manager="lightkube",
    force=True,
)
assert applied.spec == {"size": 2, "mode": "b"}, applied.spec
status = client.patch(
    Widget.Status, "lightkube", {"status": {"phase": "Ready"}}, namespace=NAMESPACE, patch_type=PatchType.MERGE
)
assert status.status == {"phase": "Ready"}

events = client.watch(Widget, namespace=NAMESPACE, resource_version=made.metadata.resourceVersion)
kinds = [next(events)[0] for _ in range(3)]
assert kinds == ["MODIFIED"] * 3, kinds
client.delete(Widget, "lightkube", namespace=NAMESPACE)
assert next(events)[0] == "DELETED"
print("done")
