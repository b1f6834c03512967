"""Validation of the built-in kinds, with the error texts of the real server.

Each function validates one API struct and yields its errors in the order of the real server. Documents are decoded and
have their defaults. Paths are wire paths.
"""
