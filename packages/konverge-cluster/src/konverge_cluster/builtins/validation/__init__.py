"""What is wrong with an object of a built-in kind, in the words of the real server.

Each function looks at one struct of the API and yields its problems in the order in which the real server finds them.
Documents are in shape and have their defaults; paths are wire paths.
"""
