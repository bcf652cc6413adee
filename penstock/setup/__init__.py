"""What the mesh needs that pip does not bring: pinned jars, a Java runtime, a redis-server."""
