from konverge.k8s.core.v1 import Secret
from konverge.triggers import to_keys


def mailbox_of(secret: Secret) -> str:
    return secret.name


to_keys(mailbox_of, Secret)  # mistake
