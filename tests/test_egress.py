"""Outgoing calls: which addresses are refused, and that every call ends in time (OWASP API7)."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from state_admin import egress
from tests.project.running import free_port
from tests.receiving import Receiver, answer, drip, flood, hang, nonsense, receiving


@pytest.fixture
def canary() -> Iterator[Receiver]:
    """A server that must never be called."""
    with receiving() as receiver:
        yield receiver


def post(url: str, seconds: float = 5.0, allow_private: bool = False) -> egress.Reply:
    return egress.post(url, b"{}", {"x-test": "1"}, seconds=seconds, allow_private=allow_private)


BAD = [
    ("ftp://example.com/", "must begin with https"),
    ("file:///etc/passwd", "must begin with https"),
    ("gopher://example.com/", "must begin with https"),
    ("example.com", "must begin with https"),
    ("https://", "no valid host"),
    ("https:///path", "no valid host"),
    ("https://user:pw@example.com/", "user name or password"),
    ("https://example.com/#x", "fragment"),
    ("https://example.com:22/", "port must be 80"),
    ("https://example.com:99999/", "between 1 and 65535"),
    ("https://exa mple.com/", "no valid host"),
    ("https://example.com\x00/", "the URL is not valid"),
    ("https://example.com/" + "x" * 2048, "at most 2048"),
]  # fmt: skip


@pytest.mark.parametrize(("url", "why"), BAD)
def test_check_url__invalid__states_the_reason(url: str, why: str) -> None:
    with pytest.raises(egress.Refused, match=why):
        egress.check_url(url, allow_private=False)


def test_check_url__any_port_if_private_is_allowed__is_valid() -> None:
    egress.check_url("http://intranet:81/", allow_private=True)


HIDEOUTS = [
    "http://127.0.0.1:{port}/", "http://localhost:{port}/", "http://[::ffff:127.0.0.1]:{port}/",
    "http://2130706433:{port}/", "http://0x7f000001:{port}/", "http://017700000001:{port}/",
    "http://127.1:{port}/", "http://0:{port}/", "http://0.0.0.0:{port}/", "http://[::]:{port}/",
    "http://LOCALHOST.:{port}/", "http://127.0.0.1.:{port}/", "http://①②⑦.0.0.1:{port}/",
    "http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/",
    "http://[64:ff9b::a9fe:a9fe]/",
]  # fmt: skip


@pytest.mark.parametrize("url", HIDEOUTS)
def test_post__private_address_in_any_spelling__is_not_called(canary: Receiver, url: str) -> None:
    with pytest.raises((egress.Refused, egress.Failed)) as caught:
        post(url.format(port=canary.port))
    assert canary.received == []
    assert isinstance(caught.value, egress.Refused) or "name has no address" in str(caught.value)


def test_post__private_address_if_allowed__is_called(canary: Receiver) -> None:
    assert post(canary.url, allow_private=True).status == 204
    assert canary.received[0].headers["host"] == f"127.0.0.1:{canary.port}"
    assert canary.received[0].body == b"{}"


def _resolver(monkeypatch: pytest.MonkeyPatch, answers: list[list[str]]) -> list[str]:
    """A name server for `rebind.test` whose result changes; returns the names it was asked for."""
    asked: list[str] = []
    genuine = socket.getaddrinfo

    def resolve(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name != "rebind.test":
            return genuine(host, port, *args, **kwargs)
        asked.append(name)
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses
        ]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return asked


def test_post__dns_changes_between_check_and_call__calls_the_checked_address(
    monkeypatch: pytest.MonkeyPatch, canary: Receiver
) -> None:
    """DNS rebinding: 127.0.0.2 represents a public address, 127.0.0.1 a private one."""
    monkeypatch.setattr(egress, "is_public", lambda address: address == "127.0.0.2")
    asked = _resolver(monkeypatch, [["127.0.0.2"], ["127.0.0.1"]])
    with receiving(host="127.0.0.2", port=canary.port) as public:
        assert post(f"http://rebind.test:{canary.port}/").status == 204
        assert len(public.received) == 1
        assert public.received[0].headers["host"] == f"rebind.test:{canary.port}"
        assert asked == ["rebind.test"]
        with pytest.raises(egress.Refused, match="its address is not public"):
            post(f"http://rebind.test:{canary.port}/")
    assert canary.received == []


def test_post__one_private_address_among_public_ones__is_refused(
    monkeypatch: pytest.MonkeyPatch, canary: Receiver
) -> None:
    _resolver(monkeypatch, [["93.184.216.34", "127.0.0.1"]])
    with pytest.raises(egress.Refused, match=r"not public; .* WEBHOOK_ALLOW_PRIVATE"):
        post(f"http://rebind.test:{canary.port}/")
    assert canary.received == []


@pytest.mark.parametrize(
    ("addresses", "private"),
    [
        (["10.1.2.3"], True),
        (["93.184.216.34"], False),
        (["93.184.216.34", "127.0.0.1"], True),
    ],
)
def test_is_private__name__is_resolved(
    monkeypatch: pytest.MonkeyPatch, addresses: list[str], private: bool
) -> None:
    _resolver(monkeypatch, [addresses])
    assert egress.is_private("https://rebind.test/hook") == private


def test_is_private__name_server_does_not_respond__is_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    released = threading.Event()

    def wait(host: str, port: int) -> list[str]:
        released.wait()
        raise OSError

    monkeypatch.setattr(egress, "_resolve", wait)
    assert not egress.is_private("https://slow.example/hook", seconds=0.01)
    released.set()

    def unknown(host: str, port: int) -> list[str]:
        raise OSError

    monkeypatch.setattr(egress, "_resolve", unknown)
    assert not egress.is_private("https://unknown.example/hook")


def test_post__first_address_is_unreachable__tries_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with receiving() as receiver:
        _resolver(monkeypatch, [["127.0.0.3", "127.0.0.1"]])
        reply = post(f"http://rebind.test:{receiver.port}/", allow_private=True)
    assert reply.status == 204


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_post__redirect__is_not_followed(canary: Receiver, status: int) -> None:
    with receiving(answer(status, Location=canary.url)) as receiver:
        assert post(receiver.url, allow_private=True).status == status
    assert canary.received == []


@pytest.mark.parametrize("manners", [hang, drip])
def test_post__receiver_is_slow__times_out(manners: Any) -> None:
    with receiving(manners) as receiver:
        began = time.monotonic()
        with pytest.raises(egress.Failed, match=r"no answer within 0\.3 s"):
            post(receiver.url, seconds=0.3, allow_private=True)
        assert time.monotonic() - began < 10


def test_post__endless_response__has_a_status_and_is_cut() -> None:
    with receiving(flood) as receiver:
        assert post(receiver.url, allow_private=True).status == 200


def test_post__no_listener__fails() -> None:
    with pytest.raises(egress.Failed, match="connection refused"):
        post(f"http://127.0.0.1:{free_port()}/", allow_private=True)


def test_post__not_http__fails() -> None:
    with receiving(nonsense) as receiver, pytest.raises(egress.Failed):
        post(receiver.url, allow_private=True)


def test_post__tls_to_a_plain_server__fails() -> None:
    with receiving() as receiver, pytest.raises(egress.Failed):
        post(receiver.url.replace("http:", "https:"), allow_private=True)


def test_post__unknown_name__fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(egress.Failed, match="the host name has no address"):
        post("https://nowhere.invalid/")


def test_post__proxy_in_the_environment__is_not_used(
    monkeypatch: pytest.MonkeyPatch, canary: Receiver
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, canary.url)
    with receiving() as receiver:
        assert post(receiver.url, allow_private=True).status == 204
    assert canary.received == []


@pytest.mark.parametrize("header", ["Retry-After", "retry-after"])
def test_post__retry_after__is_returned(header: str) -> None:
    with receiving(answer(503, **{header.replace("-", "_"): "7"})) as receiver:
        assert post(receiver.url, allow_private=True) == egress.Reply(503, "7")
