"""PostgreSQL for the Database operator: what only this engine knows.

Each member is a pod that runs Patroni over PostgreSQL, with ConfigMaps of the namespace as Patroni's store. Patroni
decides who leads; nothing here does.

`engine` is the entry. `versions` is the table of versions, `configuration` renders what Patroni reads, `members` the
container, `permissions` the Role of the members. `states` reads what Patroni has written, `logins` has the statements
of a password rotation, `local_images` the programs for process nodes, `Dockerfile` the image for other nodes.
"""
