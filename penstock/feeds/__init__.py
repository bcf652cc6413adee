"""Reading a topic once for many listeners, and the tokens with which they resume."""
