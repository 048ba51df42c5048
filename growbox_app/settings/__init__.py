"""Settings: one typed schema and its store."""
