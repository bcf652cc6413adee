"""The grammar, one file per family of statements; all share `cursor.Cursor`."""
