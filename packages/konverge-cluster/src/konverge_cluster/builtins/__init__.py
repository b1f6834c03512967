"""The built-in kinds of the embedded API server: JSON decoding, defaults, validation and tables."""
