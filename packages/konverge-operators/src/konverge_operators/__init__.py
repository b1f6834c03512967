"""Reference operators built on konverge, each deployable on its own: webapp, ecommerce, database, redis, myapp."""
