"""THE MIRROR: reflectors that follow collections, stores that keep them, and the cache that shares them."""
