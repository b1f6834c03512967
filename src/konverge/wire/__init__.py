"""HOW it is spoken, without I/O: requests, responses, frames, and what the server's answers mean."""
