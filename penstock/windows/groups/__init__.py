"""Numbers for groups and tables, which arrays are indexed with."""
