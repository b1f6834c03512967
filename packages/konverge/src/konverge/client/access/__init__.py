"""Who we are and where the server is: kubeconfig files, service accounts, credentials that rotate, TLS."""

from konverge.client.access.config import ClientConfig, load_config
from konverge.client.access.credentials import Credentials, Identity, StaticCredentials
from konverge.client.access.tls import Tls

__all__ = ["ClientConfig", "Credentials", "Identity", "StaticCredentials", "Tls", "load_config"]
