from konverge.k8s.apps.v1 import Deployment


def scale(deployment: Deployment) -> None:
    deployment.spec.replica = 3  # mistake
