"""What keeps a process of Penstock alive and observable: logs, audit, health, limits of ports, TLS,
threads that must live.
"""
