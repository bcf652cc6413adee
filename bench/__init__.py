"""Measurements of Penstock beside plain Spark: `python -m bench`. Results go to bench/RESULTS.md
and bench/results.jsonl.
"""
