"""What all workload controllers need for pods: facts, deletion order, claims, and pods from templates."""
