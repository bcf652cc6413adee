"""Statements that change the catalog: CREATE, ALTER, DROP, GRANT, and what they mean for Kafka."""
