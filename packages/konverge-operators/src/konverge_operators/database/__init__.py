"""The Database operator: a database with replication and failover as one object."""
