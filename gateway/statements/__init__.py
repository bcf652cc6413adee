"""Statements of clients: who may send them, and which part of the gateway answers."""
