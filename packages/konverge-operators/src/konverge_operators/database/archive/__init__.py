"""The program that stores and fetches backups, in the image of a member.

Run it with `python -m konverge_operators.database.archive`:

    wal-put PATH          archive_command: store a file of the log
    wal-get NAME PATH     restore_command: fetch one
    backup NAME           write a base backup, and verify it
    verify NAME           read a base backup again and verify it
    delete NAME           delete a base backup, and the log that no other one needs
    restore               fill the data directory, and recover to a time

It needs Python and nothing else: neither konverge nor another library is in that image. `stores` has the destinations,
`segments` the archived log, `base_backups` the base backups, `recovery` fills a data directory from them.

The environment has the destination (`stores.open_store`) and the connection (PGHOST, PGUSER, PGPASSWORD). It stores:

    <path>/base/<backup>/part-00000 ...       a compressed tar archive in parts
    <path>/base/<backup>/backup.json          the checksums of the parts; written last, when everything is verified
    <path>/wal/<16 digits>/<file>-<sha256>.gz the log; the checksum is that of the file before compression

`<path>` is `<name of the Database>/<its uid>/<major version>`: a restored database never writes into the log of its
origin, and one that was upgraded never into that of the version before, whose files have the same names.
"""
