"""Rows before they are frames: what a write does to a stored row, values of Python and Arrow as
columns take them, the partition of a child table.
"""
