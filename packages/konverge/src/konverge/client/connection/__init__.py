"""The parts of `transport` that need no HTTP library: bodies, deadlines, limits, proxies, error descriptions."""
