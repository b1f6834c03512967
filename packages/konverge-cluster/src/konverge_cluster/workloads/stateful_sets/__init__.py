"""StatefulSets: pods with stable names, claims for each of them, and updates in the order of their ordinals."""
