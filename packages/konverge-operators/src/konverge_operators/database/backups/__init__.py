"""Backups of a Database: the kind DatabaseBackup, its Jobs, their schedule and retention, and the recovery."""
