"""Rows and live objects as notebooks show them. Needs no IPython until something is displayed."""
