"""The generated kinds of one group: import `konverge.k8s.storage.v1`."""
