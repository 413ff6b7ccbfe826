"""API paths are resolved as they were sent: an encoded slash is not a separator."""

from __future__ import annotations

import pytest
from django.test import RequestFactory

from project.paths import RAW_PATH, SegmentConverter, encode_path


@pytest.mark.parametrize(
    ("sent", "resolved"),
    [
        ("/api/v1/threads/a%2Fb/messages", "/api/v1/threads/a%2Fb/messages"),
        ("/api/v1/threads/a%2fb", "/api/v1/threads/a%2Fb"),
        ("/api/v1/%74hreads/%7Ea", "/api/v1/threads/~a"),
        ("/api/v1/state/n/a%252Fb//c", "/api/v1/state/n/a%252Fb//c"),
        ("/api/v1/threads/%C3%BC", "/api/v1/threads/%C3%BC"),
        ("/api%2Fv1/threads", "/api%2Fv1/threads"),
    ],
)
def test_path__of_the_api__is_resolved_encoded_in_a_canonical_form(
    sent: str, resolved: str
) -> None:
    request = RequestFactory().get(sent, **{RAW_PATH: sent})  # type: ignore[arg-type]
    encode_path(request)
    assert request.path_info == resolved


def test_path__from_a_server_that_decodes__every_slash_is_a_separator() -> None:
    request = RequestFactory().get("/api/v1/threads/a%2Fb%2525")
    encode_path(request)
    assert request.path_info == "/api/v1/threads/a/b%2525"


def test_path__of_a_page__is_decoded() -> None:
    request = RequestFactory().get("/threads/a%2Fb", **{RAW_PATH: "/threads/a%2Fb"})  # type: ignore[arg-type]
    encode_path(request)
    assert request.path_info == "/threads/a/b"


def test_segment__encoded__is_decoded_once() -> None:
    assert SegmentConverter().to_python("a%252Fb%20c") == "a%2Fb c"
