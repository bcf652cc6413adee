"""What every service does as a process: it starts in one order, and stops in the reverse one."""

from penstock.service.service import Service

__all__ = ["Service"]
