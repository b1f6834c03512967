"""The MyApp operator: an application with its database and its cache as one object."""
