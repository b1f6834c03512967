"""The Kubernetes API semantics, as functions over storage: everything between a request and its response."""
