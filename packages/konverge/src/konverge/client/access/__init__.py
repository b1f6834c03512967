"""Access to an API server: kubeconfig files, service accounts, rotating credentials, TLS."""

from konverge.client.access.config import ClientConfig
from konverge.client.access.credentials import Credentials, Identity, StaticCredentials
from konverge.client.access.tls import Tls

__all__ = ["ClientConfig", "Credentials", "Identity", "StaticCredentials", "Tls"]
