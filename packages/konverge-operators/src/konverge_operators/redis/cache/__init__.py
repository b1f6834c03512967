"""The kind Cache: an in-memory cache as one object."""
