"""What Patroni reads: the file for a start, and the settings that all members share.

Rules that every change to this file keeps:

1. The file holds nothing that may change later. Patroni reads `bootstrap.dcs` once, when the first member initialises the
   cluster; from then on the settings live in the ConfigMap `<name>-config`, and all members follow it.
2. Passwords and addresses come from the environment of the container, never from the file.
3. The superuser connects from the member's own pod only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import yaml

__all__ = [
    "CONFIGURATION_FILE",
    "DIRECTORY",
    "LOOP_WAIT",
    "OWNED_PARAMETERS",
    "RESTART_PARAMETERS",
    "RETRY_TIMEOUT",
    "ROLES_FILE",
    "ROLE_LABEL",
    "SCOPE_LABEL",
    "TTL",
    "Configuration",
    "Synchronous",
]

Synchronous: TypeAlias = Literal["off", "on", "strict"]
"""How many members have a commit before it is acknowledged: one, two while two are there, always two."""

ROLE_LABEL: Final = "database.example.com/role"
"""The label of a pod with its role, `primary` or `replica`. Patroni writes it."""
SCOPE_LABEL: Final = "database.example.com/cluster"
"""The label of the objects of one cluster, on pods and on Patroni's ConfigMaps."""

TTL: Final = 20
"""Seconds after which the lock of a silent leader is free. Patroni accepts no less."""
LOOP_WAIT: Final = 5
RETRY_TIMEOUT: Final = 5
"""The leader gives up before others may lead: loop_wait + 2 * retry_timeout must not exceed the ttl."""

RESTART_PARAMETERS: Final = frozenset(
    {
        "autovacuum_max_workers",
        "huge_pages",
        "max_connections",
        "max_files_per_process",
        "max_locks_per_transaction",
        "max_pred_locks_per_transaction",
        "max_prepared_transactions",
        "max_worker_processes",
        "shared_buffers",
        "shared_preload_libraries",
        "track_activity_query_size",
        "track_commit_timestamp",
        "wal_buffers",
    }
)
"""Parameters of a user that take effect when a member restarts."""

OWNED_PARAMETERS: Final = frozenset(
    {
        "allow_alter_system",
        "archive_command",
        "archive_library",
        "archive_mode",
        "cluster_name",
        "config_file",
        "data_directory",
        "external_pid_file",
        "fsync",
        "full_page_writes",
        "hba_file",
        "hot_standby",
        "ident_file",
        "listen_addresses",
        "max_replication_slots",
        "max_wal_senders",
        "password_encryption",
        "port",
        "primary_conninfo",
        "primary_slot_name",
        "promote_trigger_file",
        "recovery_target",
        "recovery_target_action",
        "recovery_target_inclusive",
        "recovery_target_lsn",
        "recovery_target_name",
        "recovery_target_time",
        "recovery_target_timeline",
        "recovery_target_xid",
        "restore_command",
        "ssl",
        "ssl_ca_file",
        "ssl_cert_file",
        "ssl_key_file",
        "synchronous_commit",
        "synchronous_standby_names",
        "unix_socket_directories",
        "wal_level",
        "wal_log_hints",
        "zero_damaged_pages",
    }
)
"""Parameters that a user may not set: replication, failover or the data depend on them."""

DIRECTORY: Final = "/etc/patroni"
"""Where the files of the configuration are in a container."""
CONFIGURATION_FILE: Final = "patroni.yaml"
ROLES_FILE: Final = "roles.sql"

_SUPERUSER: Final = "postgres"
_REPLICATION: Final = "replication"
_REWIND: Final = "rewind"

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


@dataclass(frozen=True)
class Configuration:
    """The configuration of one cluster.

    `owner` is the role that owns `database`; it is no superuser. `parameters` are those of the user, which win over the
    defaults.
    """

    name: str
    database: str = "app"
    owner: str = "app"
    synchronous: Synchronous = "off"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    def settings(self) -> dict[str, Any]:
        """Return the settings that all members share: Patroni's dynamic configuration.

        With synchronous replication a crashed leader hands over at once. Without, it starts again if it can within the
        ttl: it alone has the last commits.
        """
        return {
            "ttl": TTL,
            "loop_wait": LOOP_WAIT,
            "retry_timeout": RETRY_TIMEOUT,
            "failsafe_mode": True,
            "maximum_lag_on_failover": 1024 * 1024,
            "primary_start_timeout": TTL if self.synchronous == "off" else 0,
            "synchronous_mode": self.synchronous != "off",
            "synchronous_mode_strict": self.synchronous == "strict",
            "postgresql": {
                "use_pg_rewind": True,
                "use_slots": True,
                "parameters": {**_PARAMETERS, **self.parameters},
                "pg_hba": self.access_rules(),
            },
        }

    def access_rules(self) -> list[str]:
        """Return pg_hba: who may connect to what, from where; everything else is rejected."""
        return [
            f"host all {_SUPERUSER} samehost scram-sha-256",
            f"host replication {_REPLICATION} all scram-sha-256",
            f"host postgres {_REWIND} all scram-sha-256",
            f'host "{self.database}" +"{self.owner}" all scram-sha-256',  # + is the role and its members
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
        content = {
            "scope": self.name,
            "kubernetes": {
                "use_endpoints": False,
                "labels": dict(self.labels),
                "scope_label": SCOPE_LABEL,
                "role_label": ROLE_LABEL,
            },
            "bootstrap": {
                "dcs": self.settings(),
                "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, "data-checksums", {"auth": "scram-sha-256"}],
                "post_init": f"psql --no-psqlrc --set=ON_ERROR_STOP=1 --file={DIRECTORY}/{ROLES_FILE}",
            },
            "postgresql": {
                "authentication": {
                    "superuser": {"username": _SUPERUSER},
                    "replication": {"username": _REPLICATION},
                    "rewind": {"username": _REWIND},
                },
                "remove_data_directory_on_rewind_failure": True,
                "remove_data_directory_on_diverged_timelines": True,
                "basebackup": [{"checkpoint": "fast"}],
            },
        }
        return yaml.safe_dump(content, sort_keys=False)
