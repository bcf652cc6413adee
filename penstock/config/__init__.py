"""Settings of a service, and how they are read: environment, files of secrets, groups of nodes."""
