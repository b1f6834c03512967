"""ReplicaSets: maintain a number of pods."""
