"""Kubernetes semantics as plain functions on storage: what the server does between a request and an answer."""
