"""ALTER DATABASE … PARTITIONS: moving a database to a topic with another number of partitions."""
