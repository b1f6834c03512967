"""An operator as a user of konverge writes it: type checkers accept all of it in strict mode."""
