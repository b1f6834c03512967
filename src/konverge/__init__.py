"""konverge: Kubernetes operators in Python."""
