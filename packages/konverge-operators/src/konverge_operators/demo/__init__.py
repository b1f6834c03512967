"""`konverge demo`: the lifecycle of a WebApp, step by step. Each step is checked on the API server."""
