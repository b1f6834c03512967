"""The generated kinds of one group: import `konverge.k8s.autoscaling.v1` and `konverge.k8s.autoscaling.v2`."""
