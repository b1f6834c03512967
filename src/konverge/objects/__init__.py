"""WHAT travels: keys, kinds, metadata, typed models and the values in them. No I/O."""
