"""Which addresses count as one client."""

from __future__ import annotations

import ipaddress


def network_of(address: str) -> str:
    """Return what is counted as one address: all of an IPv6 /64, which one machine has to itself.

    >>> network_of("::ffff:10.0.0.1"), network_of("2001:db8::1"), network_of("2001:db8::2")
    ('10.0.0.1', '2001:db8::', '2001:db8::')
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(parsed) >> 64 << 64, 64)).network_address)
