"""The files of the server: its options, and the script that creates its users.

The options hold what is the same on all members. Addresses, paths and what Galera needs are arguments of the server,
which win over the file. Passwords come from the environment of the container, never from a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from konverge_operators.database.certificate_files import TLS_DIRECTORY

__all__ = [
    "DIRECTORY",
    "OPTIONS_FILE",
    "REPLICATION",
    "SCRIPT_FILE",
    "SUPERUSER",
    "find_denied",
    "options",
    "replication_rights",
    "script",
]

DIRECTORY: Final = "/etc/database"
OPTIONS_FILE: Final = "my.cnf"
SCRIPT_FILE: Final = "users.sql"
SUPERUSER: Final = "root"
REPLICATION: Final = "replication"

_MEMBER_SETS: Final = "each member sets it for itself"
_GALERA_DEPENDS: Final = "replication depends on it"
_DATA_DEPENDS: Final = "a crash could damage the data"
_LOADS_CODE: Final = "it loads or runs what is not of the database"
_ARCHIVE_DEPENDS: Final = "backups depend on it"
_TLS_SETS: Final = "spec.tls sets it"

_DENIED: Final[tuple[tuple[str, str], ...]] = (
    ("wsrep.*|server_id|binlog_format|log_bin.*|log_slave_updates|default_storage_engine", _GALERA_DEPENDS),
    ("innodb_autoinc_lock_mode|innodb_force_recovery|read_only|super_read_only|skip_log_bin", _GALERA_DEPENDS),
    ("replicate_.*|enforce_storage_engine|innodb|lower_case_table_names", _GALERA_DEPENDS),
    ("autocommit|event_scheduler|query_cache_type|tx_read_only|transaction_read_only", _GALERA_DEPENDS),
    ("innodb_flush_log_at_trx_commit|innodb_doublewrite|innodb_flush_method|sync_binlog", _DATA_DEPENDS),
    ("innodb_data_.*|innodb_log_group_home_dir|innodb_undo_directory|innodb_read_only|innodb_page_size", _DATA_DEPENDS),
    ("datadir|basedir|tmpdir|socket|port|extra_port|bind_address|pid_file|user|chroot|log_error.*", _MEMBER_SETS),
    ("defaults_.*|no_defaults|print_defaults|general_log_file|slow_query_log_file|report_.*", _MEMBER_SETS),
    ("plugin.*|init_.*|bootstrap|secure_file_priv|local_infile|character_sets_dir|lc_messages_dir", _LOADS_CODE),
    ("gtid_.*|binlog_do_db|binlog_ignore_db|binlog_checksum|encrypt_binlog|secure_timestamp", _ARCHIVE_DEPENDS),
    ("max_binlog_size|binlog_row_image", _ARCHIVE_DEPENDS),
    ("proxy_protocol_networks", "clients could pretend to have another address"),
    ("ssl.*|tls.*|require_secure_transport", _TLS_SETS),
    ("skip_.*|disable_.*|enable_.*|loose_.*|maximum_.*", "write the option itself, with its value"),
)
_WHOLE: Final = ("general_log", "lc_messages", "slow_query_log")
"""Options whose names other options begin with."""
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_VALUE: Final = re.compile(r"[ -~]{0,1000}")

_OPTIONS: Final[Mapping[str, str]] = {
    "binlog_expire_logs_seconds": "86400",
    "binlog_format": "ROW",
    "gtid_domain_id": "2",
    "log_bin": "binlog",
    "log_bin_trust_function_creators": "ON",  # the owner may create triggers: the log has rows
    "log_slave_updates": "ON",
    "max_binlog_size": "64M",
    "secure_timestamp": "SUPER",
    "server_id": "1",
    "sync_binlog": "1",
    "wsrep_gtid_domain_id": "1",
    "wsrep_gtid_mode": "ON",
    "wsrep_slave_threads": "4",
    "default_storage_engine": "InnoDB",
    "innodb_autoinc_lock_mode": "2",
    "innodb_flush_log_at_trx_commit": "1",
    "innodb_buffer_pool_size": "128M",
    "max_connections": "150",
    "character_set_server": "utf8mb4",
}
"""All members have the same binary log: Galera numbers the transactions. Any of them can go on with the archive."""


_TLS_OPTIONS: Final[Mapping[str, str]] = {
    "ssl_ca": f"{TLS_DIRECTORY}/ca.crt",
    "ssl_cert": f"{TLS_DIRECTORY}/tls.crt",
    "ssl_key": f"{TLS_DIRECTORY}/tls.key",
    "tls_version": "TLSv1.2,TLSv1.3",
    "require_secure_transport": "ON",
}
_TLS_TRANSFER: Final = ("[sst]", "ssl-mode = VERIFY_CA")
"""A transfer of all data uses stunnel, with the same files; both sides verify each other."""


def find_denied(parameters: Mapping[str, str]) -> Iterator[str]:
    """Yield why parameters are refused. A name has one form here: the server also knows it with dashes and prefixes."""
    for name, value in sorted(parameters.items()):
        if not _NAME.fullmatch(name):
            yield f"parameters.{name}: write the name with small letters and underscores"
        elif not _VALUE.fullmatch(value):
            yield f"parameters.{name}: the value must be one line of ASCII"
        elif reason := next((reason for names, reason in _DENIED if _is_denied(name, names)), ""):
            yield f"parameters.{name}: {reason}"


def _is_denied(name: str, names: str) -> bool:
    """Report whether one of the names is meant: the server accepts a name without its end too."""
    if re.fullmatch(names, name):
        return True
    return name not in _WHOLE and any(one.startswith(name) for one in names.replace(".*", "").split("|"))


def options(parameters: Mapping[str, str], *, tls: bool = False) -> str:
    """Return the file of options, with the parameters of the user."""
    every = {**_OPTIONS, **parameters, **(_TLS_OPTIONS if tls else {})}
    lines = [f"{name} = {_quoted(value)}" for name, value in sorted(every.items())]
    return "\n".join(["[mysqld]", "skip_name_resolve", *lines, *(_TLS_TRANSFER if tls else ()), ""])


def script(database: str, owner: str) -> str:
    """Return the script that creates the users and the database; the member puts the hashes of the passwords in."""
    return f"""\
FLUSH PRIVILEGES;
DELETE FROM mysql.global_priv WHERE User = '' OR (User = '{SUPERUSER}' AND Host <> 'localhost');
FLUSH PRIVILEGES;
ALTER USER '{SUPERUSER}'@'localhost' IDENTIFIED BY PASSWORD '$SUPERUSER_PASSWORD';
CREATE USER '{REPLICATION}'@'%' IDENTIFIED BY PASSWORD '$REPLICATION_PASSWORD';
{replication_rights()}
CREATE DATABASE `{database}`;
CREATE USER '{owner}'@'%' IDENTIFIED BY PASSWORD '$APPLICATION_PASSWORD';
GRANT ALL PRIVILEGES ON `{_pattern(database)}`.* TO '{owner}'@'%';
"""


def replication_rights() -> str:
    """Return the statement that lets backups read everything."""
    rights = "SELECT, SHOW VIEW, TRIGGER, EVENT, RELOAD, PROCESS, LOCK TABLES, BINLOG MONITOR"
    return f"GRANT {rights} ON *.* TO '{REPLICATION}'@'%';"


def _pattern(database: str) -> str:
    """Return the name of a database for GRANT, where an underscore would match any character."""
    return database.replace("_", "\\_")


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
