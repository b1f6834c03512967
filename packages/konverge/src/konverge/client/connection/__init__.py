"""What `transport` is made of, without the HTTP library: bodies, deadlines, limits, proxies, and failures in words."""
