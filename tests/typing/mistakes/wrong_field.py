from konverge.k8s.apps.v1 import DeploymentSpec
from konverge.k8s.core.v1 import PodSpec, PodTemplateSpec
from konverge.k8s.meta.v1 import LabelSelector

template = PodTemplateSpec(spec=PodSpec(containers=[]))
DeploymentSpec(replica=1, selector=LabelSelector(), template=template)  # mistake
