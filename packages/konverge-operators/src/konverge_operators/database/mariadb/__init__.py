"""MariaDB with Galera for the Database operator: what only this engine knows.

Each member is a pod that runs the program `member` over mariadbd. Galera replicates and keeps the quorum; the program
starts the server and chooses the primary; nothing here does.

`engine` is the entry. `versions` is the table of versions, `configuration` has the files of the server and the
parameters that users may not set, `members` the container, `permissions` the Role of the members. `states` reads what
members have written, `logins` has the statements of a password rotation, `backups` the containers that run the program
`archive`, `local_images` the programs for process nodes, `Dockerfile` the image for other nodes.
"""
