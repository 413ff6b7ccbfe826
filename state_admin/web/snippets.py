"""curl, Python and TypeScript code that does what a page shows. Users copy it, so it is always
complete."""

from __future__ import annotations

import json
import shlex
from urllib.parse import quote

from django.conf import settings

_BEARER = '-H "Authorization: Bearer $COMMONHOLD_TOKEN"'
_JSON = "-H 'Content-Type: application/json'"


def api(path: str) -> str:
    return f"{settings.SITE_URL}/api/v1/{path}"


def state_path(namespace: str, key: str) -> str:
    return f"state/{namespace}/{quote(key, safe=':@~')}"


def curl(method: str, path: str, body: str = "", *headers: str) -> str:
    """One command; `body` is JSON text."""
    lines = ["curl" if method == "GET" else f"curl -X {method}", _BEARER]
    lines += [f"-H {shlex.quote(header)}" for header in headers]
    if body:
        lines += [_JSON, f"-d {shlex.quote(body)}"]
    lines.append(shlex.quote(api(path)))
    return " \\\n  ".join(lines)


def python(*statements: str) -> str:
    """The same with the Python client (clients/python); the statements use `state`, a `Commonhold`."""
    return (
        "import os\n\nfrom commonhold import Commonhold\n\n"
        f'state = Commonhold("{settings.SITE_URL}", os.environ["COMMONHOLD_TOKEN"])\n'
        + "".join(f"{statement}\n" for statement in statements)
    )


def both(method: str, path: str, body: str = "", *, call: str) -> dict[str, str]:
    """The context of a page that shows the request with curl and with Python. `call`: the method
    call of `Commonhold` that sends it."""
    return {"curl": curl(method, path, body), "python": python(f"print(state.{call})")}


def literal(text: str) -> str:
    """JSON text as Python code."""
    return repr(json.loads(text))


def typescript(call: str) -> str:
    """The same with the TypeScript client (clients/typescript); `call` is a method call of
    `Commonhold`."""
    return (
        'import { Commonhold } from "@commonhold/client";\n\n'
        f"const state = Commonhold.fromEnv();\nconsole.log(await state.{call});\n"
    )
