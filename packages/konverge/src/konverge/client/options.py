"""The options that all requests of a client share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from konverge.client.impersonation import Impersonation

__all__ = ["ClientOptions"]


@dataclass(frozen=True)
class ClientOptions:
    """Options of all requests of a client; `Client.using` returns a client with other options.

    `field_manager` is recorded by the server as the owner of the written fields; keep it stable between releases of an
    operator. `timeout` is how long a request may take in total, including the body and all retries. With
    `field_validation` "Strict" the server rejects fields that it does not know; "" is the server's default, a warning.
    """

    namespace: str = "default"
    field_manager: str = "konverge"
    timeout: float = 60.0
    dry_run: bool = False
    field_validation: Literal["", "Strict", "Warn", "Ignore"] = ""
    impersonate: Impersonation | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.timeout, int | float) and self.timeout > 0):
            raise ValueError(f"timeout: expected a number of seconds above 0, got {self.timeout!r}")
        if not isinstance(self.impersonate, Impersonation | None):
            raise TypeError(f"impersonate: expected Impersonation(user), got {self.impersonate!r:.100}")
