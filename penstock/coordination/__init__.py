"""What processes agree on through Redis: leases, who is present, nodes."""
