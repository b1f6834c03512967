"""Deployments: a ReplicaSet for each template, and pods moved from the old ones to the new one."""
