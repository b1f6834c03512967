"""The rules of the built-in kinds: what a write keeps, wipes, counts and refuses, kind by kind."""
