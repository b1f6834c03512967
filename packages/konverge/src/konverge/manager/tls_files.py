"""A serving certificate in files that another program renews."""

from __future__ import annotations

import logging
import ssl
import time
from pathlib import Path
from typing import Final

from konverge.errors import ConfigError
from konverge.manager.write_fence import Clock

__all__ = ["TlsFiles"]

_log = logging.getLogger("konverge.manager")

_CHECK_INTERVAL: Final = 10.0


class TlsFiles:
    """A certificate chain and its key, as PEM files.

    Promises: a changed pair is used for new connections after ten seconds at most, as long as `refresh` is called for
    each connection; a pair that cannot be loaded (half written) leaves the last good one in use and is tried again.
    """

    def __init__(self, certificate: str | Path, key: str | Path, *, clock: Clock = time.monotonic) -> None:
        self._files = (Path(certificate), Path(key))
        self._clock = clock
        self._checked_at = float("-inf")
        self._loaded: tuple[int, ...] = ()

    def context(self) -> ssl.SSLContext:
        """Load the pair and return the TLS context.

        Raises: ConfigError when the files cannot be read or do not form a pair.
        """
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            self._load(self._stat())
        except (OSError, ssl.SSLError) as error:
            names = " and ".join(map(str, self._files))
            raise ConfigError(f"the certificate of the probes could not be loaded from {names}: {error}") from error
        return self._context

    def refresh(self) -> None:
        """Reload the pair if it has changed; the files are checked every ten seconds at most."""
        now = self._clock()
        if now < self._checked_at + _CHECK_INTERVAL:
            return
        self._checked_at = now
        try:
            stat = self._stat()
            if stat != self._loaded:
                self._load(stat)
        except (OSError, ssl.SSLError) as error:
            _log.warning("certificate reload failed", extra={"reason": str(error)})

    def _stat(self) -> tuple[int, ...]:
        stats = [file.stat() for file in self._files]
        return tuple(value for each in stats for value in (each.st_mtime_ns, each.st_ino, each.st_size))

    def _load(self, stat: tuple[int, ...]) -> None:
        self._context.load_cert_chain(*self._files)
        self._loaded = stat
