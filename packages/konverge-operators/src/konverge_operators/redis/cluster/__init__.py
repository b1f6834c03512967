"""The kind RedisCluster: shards with replicas and persistence, formed and rebalanced by the operator."""
