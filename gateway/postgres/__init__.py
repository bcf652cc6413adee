"""The PostgreSQL wire, for reading: psql, drivers and tools ask the gateway as they ask a server of
PostgreSQL's.
"""
