"""All other windows: rows of open windows are kept, and windows computed from them."""
