"""How long a service that died waits until it is started again. Pure."""

from __future__ import annotations

_BACKOFF_SECONDS = (0.5, 30.0)
#: healthy for so long, a service did not die of how it starts: a pause would only keep others
#: waiting for it
_GROWN_UP_SECONDS = 10.0
#: so long the start of a new standby waits after a takeover
_TAKEOVER_SECONDS = 10.0


def pause(last: float, healthy: float, *, has_twin: bool = False) -> float:
    """Seconds until a service that died is started again.

    Args:
        last: the pause before its last start; 0 for none.
        healthy: how long it was ready before it died.
        has_twin: another one takes over now, and needs the processors.
    """
    first, longest = _BACKOFF_SECONDS
    if healthy >= _GROWN_UP_SECONDS:
        return _TAKEOVER_SECONDS if has_twin else 0.0
    return min(last * 2, longest) if last else first
