"""A Redis that is not there, asked once: what needs it says so, without the retries that a running
service wants.
"""

from __future__ import annotations

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

NOWHERE = redis.Redis(port=1, socket_connect_timeout=0.2, retry=Retry(NoBackoff(), 0))
