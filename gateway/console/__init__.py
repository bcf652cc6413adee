"""The web console: its files, and the HTTP that gives them out."""
