"""Fake APIs of language models: behaviours for tests/receiving.py, without a model."""

from __future__ import annotations

import json
from typing import Any

from tests.receiving import Handler, Manners, answer


def replies(
    content: bytes | Any, status: int = 200, kind: str = "application/json", **headers: str
) -> Manners:
    """Bytes as they are, anything else as JSON."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return answer(status, body, Content_Type=kind, **headers)


def completion(text: Any, **message: Any) -> dict[str, Any]:
    """The response of OpenAI and compatible APIs."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, **message},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 1_000, "completion_tokens": 50, "total_tokens": 1_050},
    }


def anthropic_response(text: str, stop_reason: str = "end_turn") -> dict[str, Any]:
    """The response of Anthropic."""
    return {
        "id": "msg_1",
        "type": "message",
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}],
        "stop_reason": stop_reason,
        "usage": {"input_tokens": 900, "output_tokens": 40},
    }


def error(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "some_error", **more}}


def in_turn(*each: Manners) -> Manners:
    """Each behaviour once, then the last one again and again."""

    def manners(handler: Handler, number: int) -> None:
        each[min(number, len(each)) - 1](handler, number)

    return manners


def hang_up(handler: Handler, number: int) -> None:
    """Take the request and close the connection."""
    handler.connection.shutdown(2)


def stop_halfway(handler: Handler, number: int) -> None:
    """Announce more bytes than are sent."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [{"mess')


def flood_of_json(handler: Handler, number: int) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.end_headers()
    handler.wfile.write(b'{"choices": "')
    while not handler.server.over.is_set():
        handler.wfile.write(b"x" * 65536)
