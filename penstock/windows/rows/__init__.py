"""Rows before they are counted: read, merged with what is stored, filtered, put in order, cast."""
