"""The generated kinds of one group: import `konverge.k8s.discovery.v1`."""
