"""The EcommerceApp operator: a stateless web application as one object."""
