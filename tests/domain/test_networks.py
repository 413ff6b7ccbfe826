"""Which addresses the server may call on behalf of a user."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain.networks import is_public

PRIVATE = [
    "127.0.0.1", "127.255.255.254", "0.0.0.0",  # noqa: S104
    "0.0.0.1", "10.0.0.1", "172.16.0.1",
    "172.31.255.255", "192.168.1.1", "169.254.169.254", "169.254.170.2", "100.64.0.1",
    "100.100.100.200", "168.63.129.16", "192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.1",
    "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
    "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1",
    "2001:db8::1", "100::1", "2001::1", "64:ff9b:1::1", "3fff::1", "5f00::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1",
    "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::169.254.169.254",
    "2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:0a00:0001::",
]  # fmt: skip
PUBLIC = ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "2a00:1450:4001::5", "::ffff:1.1.1.1"]
WORDS = ["", "localhost", "127.1", "0x7f.1", "2130706433", "1.1.1.1 ", "[::1]", "1.1.1.1/8"]


@pytest.mark.parametrize("address", PRIVATE)
def test_is_public__private_or_special__no(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_is_public__public__yes(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("word", WORDS)
def test_is_public__not_a_numeric_address__no(word: str) -> None:
    assert not is_public(word)


@given(st.ip_addresses(v=4))
def test_is_public__v4_embedded_in_v6__as_the_v4(address: ipaddress.IPv4Address) -> None:
    plain = is_public(str(address))
    number = int(address)
    for wrapped in (
        ipaddress.IPv6Address(0xFFFF << 32 | number),
        ipaddress.IPv6Address((0x64FF9B << 96) | number),
        ipaddress.IPv6Address((0x2002 << 112) | (number << 80) | 1),
    ):
        assert is_public(str(wrapped)) == plain, wrapped
