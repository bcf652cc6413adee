"""The Python client; see `penstock.connect`."""
