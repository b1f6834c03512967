"""A server certificate in files that somebody else renews."""

from __future__ import annotations

import logging
import ssl
import time
from pathlib import Path
from typing import Final

from konverge.errors import ConfigError
from konverge.manager.guard import Clock

__all__ = ["TlsFiles"]

_log = logging.getLogger("konverge.manager")

_LOOK_EVERY: Final = 10.0


class TlsFiles:
    """A certificate chain and its key, as PEM files.

    Promises: a pair that changed is used for new connections ten seconds later at most, as long as `refresh` is called
    for each; a pair that is of no use (half written) leaves the last good one in place and is tried again.
    """

    def __init__(self, certificate: str | Path, key: str | Path, *, clock: Clock = time.monotonic) -> None:
        self._files = (Path(certificate), Path(key))
        self._clock = clock
        self._looked = float("-inf")
        self._loaded: tuple[int, ...] = ()

    def context(self) -> ssl.SSLContext:
        """Load the pair.

        Raises: ConfigError when it cannot be read or does not fit together.
        """
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            self._load(self._stamp())
        except (OSError, ssl.SSLError) as error:
            names = " and ".join(map(str, self._files))
            raise ConfigError(f"the certificate of the probes could not be loaded from {names}: {error}") from error
        return self._context

    def refresh(self) -> None:
        """Load the pair anew if it changed; looks at the files every ten seconds at most."""
        now = self._clock()
        if now < self._looked + _LOOK_EVERY:
            return
        self._looked = now
        try:
            stamp = self._stamp()
            if stamp != self._loaded:
                self._load(stamp)
        except (OSError, ssl.SSLError) as error:
            _log.warning("The certificate of the probes could not be loaded anew", extra={"why": str(error)})

    def _stamp(self) -> tuple[int, ...]:
        found = [file.stat() for file in self._files]
        return tuple(value for each in found for value in (each.st_mtime_ns, each.st_ino, each.st_size))

    def _load(self, stamp: tuple[int, ...]) -> None:
        self._context.load_cert_chain(*self._files)
        self._loaded = stamp
