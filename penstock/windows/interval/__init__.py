"""INTERVAL windows whose aggregates need no rows: state is one accumulator a window."""
