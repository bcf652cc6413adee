"""The catalog: what databases, tables, child tables and streams there are, as one log and one view
of it.
"""
