"""The generated kinds of one group: import `konverge.k8s.node.v1`."""
