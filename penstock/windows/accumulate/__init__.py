"""What is held of each open window: accumulators of aggregates, and the slots they live in."""
