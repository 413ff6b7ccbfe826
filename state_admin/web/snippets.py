"""curl, Python and TypeScript code that does what a page shows. Users copy it, so it is always
complete."""

from __future__ import annotations

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


def python(method: str, path: str, body: str = "", *headers: str) -> str:
    """The same request with the Python standard library."""
    extra = "".join(
        f"        {name!r}: {value!r},\n" for name, value in (h.split(": ", 1) for h in headers)
    )
    # A string literal of JSON, because true and null are not Python.
    data = f"    data={body!r}.encode(),\n" if body else ""
    kind = '        "Content-Type": "application/json",\n' if body else ""
    return (
        "import json, os, urllib.request\n\n"
        "request = urllib.request.Request(\n"
        f"    {api(path)!r},\n"
        f"    method={method!r},\n"
        f"{data}"
        "    headers={\n"
        '        "Authorization": "Bearer " + os.environ["COMMONHOLD_TOKEN"],\n'
        f"{kind}{extra}"
        "    },\n"
        ")\n"
        "print(json.load(urllib.request.urlopen(request)))\n"
    )


def both(method: str, path: str, body: str = "") -> dict[str, str]:
    """The context of a page that shows the request with curl and with Python."""
    return {"curl": curl(method, path, body), "python": python(method, path, body)}


def typescript(call: str) -> str:
    """The same with the TypeScript client (clients/typescript); `call` is a method call of
    `Commonhold`."""
    return (
        'import { Commonhold } from "@commonhold/client";\n\n'
        f"const state = Commonhold.fromEnv();\nconsole.log(await state.{call});\n"
    )
