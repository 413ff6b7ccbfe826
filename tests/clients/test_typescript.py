"""The TypeScript client without installing it. Its own tests are `npm test` and `make compat`."""

from __future__ import annotations

import hashlib
import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from project.env import BASE_DIR
from state_admin.web.addresses import entry_url, run_url, thread_url
from tests.builders import Person, make_namespace, make_run, make_thread, put
from tests.patience import PATIENCE
from tests.web.conftest import admin

__all__ = ["admin"]

CLIENT = BASE_DIR / "clients" / "typescript"
NODE = shutil.which("node") or ""

# Replaces the client: prints the called methods and their arguments.
_RECORDER = """
const recorder = (path) => new Proxy(() => {}, {
  get: (_, name) => (name === "then" ? undefined : recorder([...path, name])),
  apply: (_, self, given) => JSON.stringify([path.join("."), ...given]),
});
export const Commonhold = { fromEnv: () => recorder([]) };
"""


def test_types__of_the_committed_document__are_current() -> None:
    written = (CLIENT / "src" / "openapi.ts").read_text()
    found = re.search(r"^// sha256 of docs/openapi\.json: (\w+)$", written, re.MULTILINE)
    assert found
    document = (BASE_DIR / "docs" / "openapi.json").read_bytes()
    assert found.group(1) == hashlib.sha256(document).hexdigest(), "run `make client-types`"


def test_reference__of_the_committed_sources__is_current() -> None:
    head, _, page = (BASE_DIR / "docs/reference/typescript.md").read_text().partition("\n")
    found = re.search(r"sha256 of both: (\w+) -->$", head)
    assert found
    total = hashlib.sha256()
    for path in [*sorted((CLIENT / "src").glob("*.ts")), CLIENT / "reference.mjs"]:
        total.update(path.read_bytes())
    total.update(page.encode())
    assert found.group(1) == total.hexdigest(), "run `make client-types`"


def test_reference__of_the_methods__has_each_of_them() -> None:
    page = (BASE_DIR / "docs/reference/typescript.md").read_text()
    listed = re.findall(r"^### (?:state|Commonhold)\.(\S+)$", page, re.MULTILINE)
    client = (CLIENT / "src/client.ts").read_text()
    groups = dict(re.findall(r"^  readonly (\w+) = new (\w+)\(this\);$", client, re.MULTILINE))
    methods = [name for name in _methods("Commonhold") if name != "constructor"]
    methods += [f"{name}.{each}" for name, group in groups.items() for each in _methods(group)]
    assert len(methods) > 100
    assert sorted(listed) == sorted(methods)


def _methods(class_name: str) -> list[str]:
    """The public methods of a class, by the formatting of the source."""
    texts = (path.read_text() for path in (CLIENT / "src").glob("*.ts"))
    found = [re.search(rf"^export class {class_name}\b.*?^}}", text, re.M | re.S) for text in texts]
    (body,) = [each[0] for each in found if each]
    return re.findall(r"^  (?:static |async )*(\w+)(?:<.*>)?\(", body, re.MULTILINE)


def test_problems__every_class_of_the_python_client__exists_in_typescript() -> None:
    """Both clients have a class for each problem, by the same slugs."""
    python = (BASE_DIR / "clients" / "python" / "src" / "commonhold" / "problems.py").read_text()
    slugs = dict(re.findall(r'class (\w+)\((?:(?!class ).)*?slug = "([\w-]+)"', python, re.DOTALL))
    typescript = (CLIENT / "src" / "problems.ts").read_text()
    known = re.findall(r'^  "?([\w-]+)"?: ([A-Z]\w+),$', typescript, re.MULTILINE)
    assert {name: slug for slug, name in known if not slug.isdigit()} == {
        name: slug for name, slug in slugs.items() if name != "Problem"
    }


@pytest.mark.skipif(not NODE, reason="needs Node.js to run what is copied")
def test_pages__typescript_examples__call_the_client(
    admin: Client, alice: Person, tmp_path: Path
) -> None:
    key, thread = 'a/b "quoted" `${x}` </script> ü', "thread 'one'/\\"
    make_namespace(alice.actor, "notes")
    value = {"text": 'it\'s "so" `${y}`\n', "n": 1.5, "none": None}
    put(alice.actor, "notes", key, value)
    make_thread(alice.actor, thread)
    make_run(alice.actor, thread, "r/1")
    package = tmp_path / "node_modules" / "@commonhold" / "client"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"type": "module", "exports": "./index.js"}')
    (package / "index.js").write_text(_RECORDER)

    def called(url: str) -> list[Any]:
        page = html.unescape(admin.get(url).content.decode())
        copied = re.findall(r"import \{ Commonhold \}.*?console\.log\(.*?\);\n", page, re.DOTALL)
        return [json.loads(_run(text, tmp_path)) for text in copied]

    assert called(entry_url("notes", key, tab="code")) == [
        ["get", "notes", key],
        ["put", "notes", key, value, {"if_version": 1}],
    ]
    assert called(entry_url("notes", "absent", tab="code"))[1][-1] == {"if_version": 0}
    assert called(thread_url(thread)) == [["threads.context", thread]]
    assert called(run_url("r/1")) == [["runs.get", "r/1"]]


def _run(program: str, folder: Path) -> str:
    (folder / "copied.mjs").write_text(program)
    done = subprocess.run(
        [NODE, "copied.mjs"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, program + done.stderr
    return done.stdout
