"""The scheduler's decisions: small filters and scores, plain functions of a pod and of a snapshot of the cluster.

A filter (`snapshot.Filter`) prepares a check for one pod; the check returns why a node does not fit. A score
(`snapshot.Score`) ranks the nodes that fit. `scheduler.FILTERS` and `scheduler.SCORES` list them in the order of
kube-scheduler, whose texts they return.
"""
