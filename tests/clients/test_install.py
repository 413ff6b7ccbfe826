"""The installation commands of docs/guides/install.md, and the packages that `make dist` builds.

The tests marked `dist` install those packages into empty folders: `make test-dist` runs them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from project.env import BASE_DIR
from tests.builders import Person
from tests.docs.serving import serve
from tests.docs.sessions import Environment
from tests.docs.test_pages import run_page, runnable_blocks
from tests.project.running import Running
from tests.streams.conftest import web

__all__ = ["web"]

DIST = BASE_DIR / "dist"
GUIDES = BASE_DIR / "docs" / "guides"
PYTHON = tomllib.loads((BASE_DIR / "clients/python/pyproject.toml").read_text())["project"]
TYPESCRIPT = json.loads((BASE_DIR / "clients/typescript/package.json").read_text())
NPM = shutil.which("npm") or ""

PAGES = [BASE_DIR / "README.md", *BASE_DIR.glob("clients/*/README.md"), *GUIDES.glob("*.md")]


def commands(page: Path, command: str) -> list[str]:
    """The arguments of a command on a page: `pip install './clients/python[adk]'` → the path."""
    found = re.findall(rf"{command} install ([^\n`]+)", page.read_text())
    return [argument.strip("'\" ") for argument in found]


def test_install_page__extras__match_the_package() -> None:
    named = re.findall(r"clients/python\[([\w-]+)\]", (GUIDES / "install.md").read_text())
    with_dependencies = {name for name, needs in PYTHON["optional-dependencies"].items() if needs}
    assert sorted(named) == sorted(with_dependencies)


def test_install_page__file_names__match_this_version() -> None:
    text = (GUIDES / "install.md").read_text()
    assert PYTHON["version"] == TYPESCRIPT["version"]
    names = set(re.findall(r"commonhold-[\w.-]+?\.(?:whl|tar\.gz|tgz)", text))
    version = PYTHON["version"]
    assert names == {
        f"commonhold-{version}-py3-none-any.whl",
        f"commonhold-{version}.tar.gz",
        f"commonhold-client-{version}.tgz",
    }


def test_pages__install_commands__use_no_package_index() -> None:
    """Until there is a release, `pip install commonhold` would install code of another author."""
    found = {
        (page.name, argument)
        for page in PAGES
        for command in ("pip", "npm")
        for argument in commands(page, command)
        if re.search(r"commonhold|clients/", argument)
        and not re.match(
            r"\./clients/python(\[[\w-]+\])?$|commonhold-\d\S+$|\./commonhold-client-\d\S+\.tgz$|"
            r"/path/to/the/clone/dist/commonhold-client-\d\S+\.tgz$",
            argument,
        )
    }
    assert found == set()


def test_pages__that_install_a_client__link_to_the_install_page() -> None:
    missing = [
        page.name
        for page in PAGES
        if re.search(r"install (?:'?\./clients|\S*commonhold-)", page.read_text())
        and page.name != "install.md"
        and "](install.md)" not in page.read_text()
    ]
    assert missing == []


# The packages themselves -------------------------------------------------------------------------

dist = [pytest.mark.dist, pytest.mark.django_db(transaction=True), pytest.mark.timeout(900)]


def artefact(pattern: str) -> Path:
    found = list(DIST.glob(pattern))
    assert len(found) == 1, f"{pattern}: {found}; run `make dist`"
    return found[0]


def first_block(guide: str, language: str) -> str:
    text = (GUIDES / guide).read_text()
    found = re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert found, f"{guide} has no {language}"
    return found.group(1)


def run(folder: Path, *command: str | Path, **env: str) -> str:
    """The output of a command, which must succeed. It cannot import packages of this
    environment."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        command, cwd=folder, env=inherited | env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment(web: Running, person: Person) -> dict[str, str]:
    return {
        "COMMONHOLD_URL": f"http://127.0.0.1:{web.port}",
        "COMMONHOLD_TOKEN": person.token,
    }


class TestDist:
    pytestmark = dist

    @pytest.mark.parametrize("pattern", ["commonhold-*.whl", "commonhold-*.tar.gz"])
    def test_python_package__in_an_empty_environment__runs_the_guides_first_block(
        self, pattern: str, web: Running, alice: Person, tmp_path: Path
    ) -> None:
        run(tmp_path, sys.executable, "-m", "venv", "venv")
        scripts = tmp_path / "venv" / "bin"
        pip = (scripts / "python", "-m", "pip", "install", "--quiet", "--no-compile")
        run(tmp_path, *pip, "--disable-pip-version-check", artefact(pattern))
        (tmp_path / "program.py").write_text(first_block("python.md", "python"))
        run(tmp_path, scripts / "python", "program.py", **environment(web, alice))
        shown = run(
            tmp_path, scripts / "python", "-c", "import commonhold; print(commonhold.__version__)"
        )
        assert shown == f"{PYTHON['version']}\n"
        assert run(tmp_path, scripts / "commonhold", "--version") == f"commonhold {shown}"
        stored = run(
            tmp_path,
            *(scripts / "commonhold", "export", "python_guide.team"),
            **environment(web, alice),
        )
        assert json.loads(stored)["value"]["goal"] == "Ship the feature"

    @pytest.mark.skipif(not NPM, reason="needs Node.js and npm")
    def test_npm_package__in_an_empty_folder__runs_the_guide(self, tmp_path: Path) -> None:
        pinned = json.loads((BASE_DIR / "compat/agentkit/package.json").read_text())
        others = pinned["dependencies"] | pinned["devDependencies"]
        del others["@commonhold/client"]
        (tmp_path / "package.json").write_text('{"private": true}')
        options = ("--ignore-scripts", "--no-audit", "--no-fund", "--silent")
        packages = [f"{name}@{version}" for name, version in others.items()]
        run(tmp_path, NPM, "install", *options, artefact("commonhold-client-*.tgz"), *packages)
        with serve(None) as server:
            installed = Environment(node_modules=tmp_path / "node_modules")
            run_page(runnable_blocks("docs/guides/typescript.md"), server, installed)
        imported = (
            'import("@commonhold/client/agentkit").then((it) => console.log(Object.keys(it)))'
        )
        assert "commonholdHistory" in run(tmp_path, "node", "-e", imported)
