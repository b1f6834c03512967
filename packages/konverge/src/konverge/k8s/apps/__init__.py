"""The generated kinds of one group: import `konverge.k8s.apps.v1`."""
