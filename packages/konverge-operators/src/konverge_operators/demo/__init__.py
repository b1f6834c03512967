"""`konverge demo`: the life of a WebApp, step by step, each step checked on the API server."""
