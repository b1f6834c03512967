"""The commands that this package contributes to `konverge`: cluster, dev, fault and nodes."""
