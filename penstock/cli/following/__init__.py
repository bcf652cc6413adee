"""What `penstock follow` reads and how it prints."""
