"""The command `konverge new`: a project for an operator, from templates."""
