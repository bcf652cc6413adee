"""Setting up what pip does not bring: pinned jars, a Java runtime, a redis-server."""
