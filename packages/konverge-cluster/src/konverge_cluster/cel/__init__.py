"""The Common Expression Language as Kubernetes speaks it: parsed, checked against types, priced, evaluated.

`environments.Environment` names the variables and their types; its `compile` turns a text into a `Program`, or raises
`CompileError` with the texts of the real server. Everything here is pure: no I/O, no clock, no state.

    text -> lexing -> parsing (with macros) -> checking -> closures

Nothing is loaded with the package: a cluster without rules does not need it.
"""
