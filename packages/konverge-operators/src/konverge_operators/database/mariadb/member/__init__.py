"""The program of a member: it starts mariadbd, decides whether it bootstraps or joins, and reports what it is.

Run it with `python -m konverge_operators.database.mariadb.member`. It needs Python and nothing else: neither konverge
nor another library is in the image. Galera replicates and keeps the quorum. This program adds what Galera leaves to an
administrator: which member starts first after all of them were down, and which one clients write to.

`decisions` is pure and has the rules. `positions` reads how far the data of a member is, `server` runs mariadbd,
`api_server` has the record and the reports, `status_server` answers probes and other members, `loop` connects them.
"""
