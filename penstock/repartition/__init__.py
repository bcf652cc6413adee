"""What services need while a database gets more partitions: progress, the gate for writes, readers
that go on to the next topic.
"""
