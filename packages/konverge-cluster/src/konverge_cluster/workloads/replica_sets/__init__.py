"""ReplicaSets: as many pods as they ask for."""
