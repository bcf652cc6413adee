"""Mutation runs: small faults put into the code on purpose, and whether its tests notice."""
