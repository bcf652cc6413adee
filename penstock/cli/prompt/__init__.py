"""`penstock sql` without a statement: a prompt with history, completion and commands of its own."""
