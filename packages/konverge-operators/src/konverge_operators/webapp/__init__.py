"""The WebApp operator: a stateless web application as one object."""
