"""The Common Expression Language with the Kubernetes libraries: parser, type checker, cost estimate, evaluation.

`environments.Environment` has the variables and their types; its `compile` turns a text into a `Program`, or raises
`CompileError` with the messages of the real server. Everything here is pure: no I/O, no clock, no state.

        text -> lexer -> parser (with macros) -> checker -> compiler -> closures

Importing the package loads nothing: a cluster without rules does not need it.
"""
