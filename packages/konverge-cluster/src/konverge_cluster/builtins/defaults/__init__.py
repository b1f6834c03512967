"""What a field of a built-in kind holds when nobody sets it.

Each function fills in one struct of the API, in place, and sets only what is missing. They run on documents that are
in shape: structs that are always there are there.
"""
