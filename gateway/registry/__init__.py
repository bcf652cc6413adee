"""Confluent's Schema Registry API over the catalog."""
