"""Tests of operators on an embedded cluster: the pytest fixture `cluster`, in `konverge_cluster.testing.fixtures`."""
