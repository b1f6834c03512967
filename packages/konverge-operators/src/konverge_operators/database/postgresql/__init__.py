"""PostgreSQL for the Database operator: what only this engine knows.

Each member is a pod that runs Patroni over PostgreSQL, with ConfigMaps of the namespace as Patroni's store. Patroni decides
who leads; nothing here does.

`versions` is the table of versions, `configuration` renders what Patroni reads, `members` the container, `permissions` the
Role of the members, `local_images` the programs for process nodes.
"""
