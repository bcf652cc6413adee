"""Which windows a row belongs to, for every kind of window."""
