"""The embedded control plane: storage, the semantics of the API, the HTTP front and simulated built-in controllers."""
