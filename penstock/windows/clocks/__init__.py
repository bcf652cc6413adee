"""What time it is for a group, a table and a stream, and which rows are late."""
