"""The program that backs up and restores MariaDB, in the image of a member.

Run it with `python -m konverge_operators.database.mariadb.archive`:

    backup NAME     write a dump of everything, and load it into a temporary server
    verify NAME     read a dump again and load it into a temporary server
    delete NAME     delete a dump, and the log that no other one needs
    restore         fill the data directory from a dump and the log, up to a time

The log is archived by the member that accepts writes (`member.archiver`). `binary_logs` reads its files, `logs` stores
and finds them, `dumps` writes and verifies, `recovery` restores, `temporary_server` is what both load into. Stores,
parts and documents of backups are those of `konverge_operators.database.archive`.

    <path>/base/<backup>/part-00000 ...                      a compressed dump in parts
    <path>/base/<backup>/backup.json                         as for PostgreSQL; `first` is the position of the dump
    <path>/log/<position before>-<last position>-<time>-<sha256>.gz
        a file of the log; the time is the second of its last commit, the checksum that before compression
    <path>/log.json                                          until when the log is complete

A position is the number of a transaction. Galera assigns it (wsrep_gtid_mode), so all members have the same one.
"""
