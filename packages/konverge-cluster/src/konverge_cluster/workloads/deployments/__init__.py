"""Deployments: a replica set for each template, and pods moved from the old ones to the new."""
