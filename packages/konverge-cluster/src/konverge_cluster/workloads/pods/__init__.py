"""What every workload asks of pods: facts, the order of removal, claims, and pods made from templates."""
