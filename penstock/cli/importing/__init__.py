"""What `penstock import` does with a file: reads it, finds its types, and writes its rows."""
