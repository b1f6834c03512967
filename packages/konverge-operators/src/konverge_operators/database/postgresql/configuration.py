"""What Patroni reads: the file for a start, and the settings that all members share.

Rules that every change to this file keeps:

1. The file holds nothing that may change later. Patroni reads `bootstrap.dcs` once, when the first member initialises
   the cluster; from then on the settings live in the ConfigMap `<name>-config`, and all members follow it.
2. Passwords and addresses come from the environment of the container, never from the file.
3. The superuser connects from the member's own pod only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import yaml

from konverge_operators.database.certificate_files import TLS_DIRECTORY

__all__ = [
    "CONFIGURATION_FILE",
    "DIRECTORY",
    "LOOP_WAIT",
    "OWNED_PARAMETERS",
    "REPLICATION",
    "RETRY_TIMEOUT",
    "REWIND",
    "ROLES_FILE",
    "ROLE_LABEL",
    "SCOPE_LABEL",
    "SUPERUSER",
    "TTL",
    "Configuration",
    "Synchronous",
]

Synchronous: TypeAlias = Literal["off", "on", "strict"]
"""How many members have a commit before it is acknowledged: one, two while two are there, always two."""

ROLE_LABEL: Final = "example.com/role"
"""The label of a pod with its role, `primary` or `replica`. Patroni writes it."""
SCOPE_LABEL: Final = "app.kubernetes.io/instance"
"""The label with the name of the cluster, on pods and on Patroni's ConfigMaps."""

TTL: Final = 20
"""Seconds after which the lock of a silent leader is free. Patroni accepts no less."""
LOOP_WAIT: Final = 4
RETRY_TIMEOUT: Final = 8
"""The leader gives up before others may lead: loop_wait + 2 * retry_timeout must not exceed the ttl.

It is as long as that allows: a request is tried up to three times within it, so an API server that answers after 2 s
does not yet make a leader step down.
"""

_REPLICATION_DEPENDS: Final = "replication and failover depend on it"
_PATRONI_SETS: Final = "each member sets it for itself"
_DATA_DEPENDS: Final = "a crash could damage the data"
_BACKUPS_SET: Final = "backups set it"
_TLS_SETS: Final = "spec.tls sets it"

OWNED_PARAMETERS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("fsync", "full_page_writes", "ignore_checksum_failure", "zero_damaged_pages"), _DATA_DEPENDS),
    **dict.fromkeys(("archive_command", "archive_library", "archive_mode", "restore_command"), _BACKUPS_SET),
    **dict.fromkeys(("ssl", "ssl_ca_file", "ssl_cert_file", "ssl_key_file", "ssl_min_protocol_version"), _TLS_SETS),
    **dict.fromkeys(
        (
            "cluster_name",
            "config_file",
            "data_directory",
            "external_pid_file",
            "hba_file",
            "ident_file",
            "listen_addresses",
            "port",
            "unix_socket_directories",
        ),
        _PATRONI_SETS,
    ),
    **dict.fromkeys(
        (
            "hot_standby",
            "max_replication_slots",
            "max_wal_senders",
            "password_encryption",
            "primary_conninfo",
            "primary_slot_name",
            "recovery_target",
            "recovery_target_action",
            "recovery_target_inclusive",
            "recovery_target_lsn",
            "recovery_target_name",
            "recovery_target_time",
            "recovery_target_timeline",
            "recovery_target_xid",
            "synchronous_commit",
            "synchronous_standby_names",
            "wal_level",
            "wal_log_hints",
        ),
        _REPLICATION_DEPENDS,
    ),
}
"""Parameters that a user may not set, with the reason."""

DIRECTORY: Final = "/etc/database"
"""Where the files of the configuration are in a container."""
CONFIGURATION_FILE: Final = "patroni.yaml"
ROLES_FILE: Final = "roles.sql"

SUPERUSER: Final = "postgres"
REPLICATION: Final = "replication"
REWIND: Final = "rewind"

_PARAMETERS: Final[Mapping[str, Any]] = {
    "hot_standby": "on",
    "max_connections": 100,
    "max_replication_slots": 16,
    "max_wal_senders": 16,
    "password_encryption": "scram-sha-256",
    "synchronous_commit": "on",
    "tcp_keepalives_idle": 10,
    "tcp_keepalives_interval": 5,
    "tcp_keepalives_count": 3,
    "unix_socket_directories": "",
    "wal_keep_size": "128MB",
    "wal_level": "replica",
    "wal_log_hints": "on",
    "wal_receiver_timeout": "10s",
    "wal_sender_timeout": "10s",
}

_TLS_PARAMETERS: Final[Mapping[str, Any]] = {
    "ssl": "on",
    "ssl_cert_file": f"{TLS_DIRECTORY}/tls.crt",
    "ssl_key_file": f"{TLS_DIRECTORY}/tls.key",
    "ssl_min_protocol_version": "TLSv1.2",
}


@dataclass(frozen=True)
class Configuration:
    """The configuration of one cluster.

    `owner` is the role that owns `database`; it is no superuser. `labels` are those of the members, with the name of
    the cluster as the value of `SCOPE_LABEL`. With `tls` all connections but those within a pod need TLS.
    `major` is the major version of the data: Patroni stores it together with the system identifier.
    """

    name: str
    database: str = "app"
    owner: str = "app"
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    tls: bool = False
    major: str = ""

    def settings(self, synchronous: Synchronous = "off", parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the settings that all members share, Patroni's dynamic configuration; `parameters` are the user's.

        With synchronous replication a crashed leader hands over at once. Without, it starts again if it can within the
        ttl: it alone has the last commits.
        """
        return {
            "major": self.major,
            "ttl": TTL,
            "loop_wait": LOOP_WAIT,
            "retry_timeout": RETRY_TIMEOUT,
            "failsafe_mode": True,
            "maximum_lag_on_failover": 1024 * 1024,
            "primary_start_timeout": TTL if synchronous == "off" else 0,
            "synchronous_mode": synchronous != "off",
            "synchronous_mode_strict": synchronous == "strict",
            "postgresql": {
                "use_pg_rewind": True,
                "use_slots": True,
                "parameters": {**_PARAMETERS, **(parameters or {}), **(_TLS_PARAMETERS if self.tls else {})},
                "pg_hba": self.access_rules(),
            },
        }

    def access_rules(self) -> list[str]:
        """Return pg_hba: who may connect to what, from where; everything else is rejected."""
        host = "hostssl" if self.tls else "host"
        return [
            f"host all {SUPERUSER} samehost scram-sha-256",
            f"{host} replication {REPLICATION} all scram-sha-256",
            f"{host} postgres {REWIND} all scram-sha-256",
            f'{host} "{self.database}" +"{self.owner}" all scram-sha-256',  # + means the role and its members
        ]

    def roles(self) -> str:
        """Return the script that creates the owner and the database, for psql; the password is in the environment."""
        return f"""\
\\set password `printf %s "$APPLICATION_PASSWORD"`
SET log_min_error_statement TO panic;
CREATE ROLE "{self.owner}" LOGIN PASSWORD :'password';
CREATE DATABASE "{self.database}" OWNER "{self.owner}";
REVOKE ALL ON DATABASE "{self.database}" FROM PUBLIC;
"""

    def file(self) -> str:
        """Return the file that Patroni starts with, as YAML."""
        labels = {name: value for name, value in self.labels.items() if name != SCOPE_LABEL}
        verified = {"sslmode": "verify-ca", "sslrootcert": f"{TLS_DIRECTORY}/ca.crt"} if self.tls else {}
        initdb = [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, "data-checksums", {"auth": "scram-sha-256"}]
        content = {
            "scope": self.name,
            "kubernetes": {
                "use_endpoints": False,
                "labels": labels,
                "scope_label": SCOPE_LABEL,
                "role_label": ROLE_LABEL,
            },
            "bootstrap": {
                "dcs": self.settings(),
                "initdb": initdb,
                "post_init": f"psql --no-psqlrc --set=ON_ERROR_STOP=1 --file={DIRECTORY}/{ROLES_FILE}",
            },
            "postgresql": {
                "authentication": {
                    "superuser": {"username": SUPERUSER},
                    "replication": {"username": REPLICATION, **verified},
                    "rewind": {"username": REWIND, **verified},
                },
                "remove_data_directory_on_rewind_failure": True,
                "remove_data_directory_on_diverged_timelines": True,
                "basebackup": [{"checkpoint": "fast"}],
            },
        }
        return yaml.safe_dump(content, sort_keys=False)
