"""Defaults of the built-in kinds.

Each function sets the defaults of one API struct in place, and only for missing fields. Documents are decoded before:
structs that Go always prints are present.
"""
