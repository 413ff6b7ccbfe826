"""Which IP addresses the server may call on behalf of a user (OWASP API7, SSRF), and to which subscriber
an address belongs.

Not here: host names. A name is resolved once and its addresses are checked (state_admin/egress.py).
"""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv6Address
from typing import Final

# Forms in which an IPv6 address contains an IPv4 address that a gateway would translate: the
# prefix, and the position of the IPv4 address in bits from the right.
_EMBEDDINGS: Final = (
    (ipaddress.IPv6Network("::ffff:0:0/96"), 0),  # IPv4-mapped
    (ipaddress.IPv6Network("::ffff:0:0:0/96"), 0),  # IPv4-translated (SIIT)
    (ipaddress.IPv6Network("::/96"), 0),  # IPv4-compatible, obsolete
    (ipaddress.IPv6Network("64:ff9b::/96"), 0),  # NAT64
    (ipaddress.IPv6Network("2002::/16"), 80),  # 6to4
)

# Networks that `is_global` of some Python versions accepts.
_CLOSED: Final = (
    ipaddress.ip_network("0.0.0.0/8"),
    # carrier-grade NAT; 100.100.100.200 is a cloud's metadata service
    ipaddress.ip_network("100.64.0.0/10"),
    ipaddress.ip_network("168.63.129.16/32"),  # Azure's internal service at a public address
    ipaddress.ip_network("192.0.0.0/24"),
    ipaddress.ip_network("192.88.99.0/24"),  # 6to4 relays
    ipaddress.ip_network("198.18.0.0/15"),
    ipaddress.ip_network("240.0.0.0/4"),
    ipaddress.ip_network("64:ff9b:1::/48"),  # NAT64 of a local network
    ipaddress.ip_network("100::/64"),
    ipaddress.ip_network("2001::/23"),  # Teredo, ORCHID and other protocols
    ipaddress.ip_network("2001:db8::/32"),
    ipaddress.ip_network("3fff::/20"),
    ipaddress.ip_network("5f00::/16"),
    ipaddress.ip_network("fec0::/10"),
)


def is_public(address: str) -> bool:
    """Whether `address` (numeric, as returned by a resolver) is a public unicast address.

    False for all others: private, loopback, link-local including metadata services of clouds,
    shared, multicast, reserved, each also when embedded in IPv6; and for text that is not an
    address.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return _is_public(parsed)


def subscriber_of(address: str) -> str:
    """The subscriber to whom an address belongs: for IPv6 its /64 network, because each host has one and
    could use another of its addresses each time. Text that is not an address is returned as it is."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:  # from a trusted proxy, or a socket without an address
        return address
    if isinstance(ip, IPv4Address):
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.IPv6Network((int(ip), 64), strict=False).network_address)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return False
        for network, shift in _EMBEDDINGS:
            if address in network:
                embedded = IPv4Address((int(address) >> shift) & 0xFFFF_FFFF)
                return _is_public(embedded)
    return (
        address.is_global
        and not address.is_multicast
        and not any(address in network for network in _CLOSED if network.version == address.version)
    )
