"""The built-in kinds of the embedded control plane: their shape, defaults, rules and tables."""
