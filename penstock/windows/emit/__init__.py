"""The way of a result out of a kernel: decision, window rows, projection, fill, buffer."""
