from konverge import ObjectMeta
from konverge.k8s.apps.v1 import Deployment

Deployment(metadata=ObjectMeta(name="mail"))  # mistake
