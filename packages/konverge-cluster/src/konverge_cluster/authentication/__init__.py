"""Authentication: who sends a request, by client certificate, known token or token of a service account."""
