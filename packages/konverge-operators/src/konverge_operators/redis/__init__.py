"""The Redis operator: in-memory caches and sharded clusters, on Valkey or Redis servers."""
