"""Partition processors: what happens to the records of one topic-partition."""
