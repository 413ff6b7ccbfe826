"""Requirements on a database server, in every process: durable writes, and no values in its log.

The tests share a PostgreSQL that is reached by DATABASE_URL and configured as an operator might.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psycopg
import pytest
from django.db import OperationalError, connections

from project import databases
from project.env import read_environment
from project.postgres import server as server_module
from project.postgres.base import DatabaseWrapper
from project.postgres.cluster import Cluster
from project.postgres.server import PORT
from project.postgres.session import PRIVATE_LOG, UnsafeServer, check_server
from tests.project.running import Running, free_port, wait_for

Start = Callable[..., Running]
Connect = Callable[[str], AbstractContextManager[DatabaseWrapper]]


class Server:
    """A server with PostgreSQL's own defaults, and these options on its command line."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.cluster = Cluster(folder)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(server_module, "_ALWAYS", ("listen_addresses=", *options))
            patch.setattr(server_module, "_CONF", "")
            self.cluster.acquire()

    def url(self, user: str = "postgres", database: str = "postgres", options: str = "") -> str:
        query = f"host={self.cluster.socket_folder}&port={PORT}"
        query += f"&options={options}" if options else ""
        return f"postgresql://{user}@/{database}?{query}"

    def execute(self, *statements: str) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    @contextmanager
    def configured(self, **settings: str) -> Iterator[None]:
        """With these settings in its configuration file."""
        try:
            for name, value in settings.items():
                self.execute(f"ALTER SYSTEM SET {name} = '{value}'")
            self._reload(settings)
            yield
        finally:
            defaults = self._show("boot_val", settings)
            self.execute("ALTER SYSTEM RESET ALL")
            self._reload(defaults)

    def _reload(self, settings: dict[str, str]) -> None:
        self.execute("SELECT pg_reload_conf()")
        wait_for(lambda: self._show("setting", settings) == settings, "the settings are in force")

    def _show(self, column: str, names: dict[str, str]) -> dict[str, str]:
        with psycopg.connect(self.url()) as connection:
            query = f"SELECT name, {column} FROM pg_settings WHERE name = ANY(%s)".encode()
            return dict(connection.execute(query, [list(names)]).fetchall())

    def log(self) -> str:
        return self.cluster.log.read_text()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="ch"))
    made = Server(folder / "other")
    yield made
    made.cluster.release()
    shutil.rmtree(folder)


@pytest.fixture
def connect(django_db_blocker: pytest.FixtureRequest) -> Connect:
    """Django's own connections to a server, as each process opens them."""

    @contextmanager
    def begin(url: str) -> Iterator[DatabaseWrapper]:
        defaults = connections["default"].settings_dict
        wrapper = DatabaseWrapper({**defaults, "EMBEDDED": False, **databases.from_url(url)})
        with django_db_blocker.unblock():
            try:
                wrapper.ensure_connection()
                yield wrapper
            finally:
                wrapper.close()

    return begin


def refusal(connect: Connect, url: str) -> str:
    with pytest.raises(OperationalError) as caught, connect(url):
        pass
    assert isinstance(caught.value.__cause__, UnsafeServer)
    return str(caught.value)


ROLES = {
    "web": ("-m", "project.processes", "web"),
    "worker": ("-m", "project.processes", "worker"),
    "beat": ("-m", "project.processes", "beat"),
    "serve": ("manage.py", "serve"),
    "a command": ("manage.py", "migrate"),
    "celery's own command": ("-m", "celery", "-A", "project.celery", "worker"),
}


def test_processes__server_without_fsync__none_starts(server: Server, start: Start) -> None:
    with server.configured(fsync="off"):
        for role, arguments in ROLES.items():
            process = start(*arguments, DATABASE_URL=server.url(), PORT=str(free_port()))
            assert process.wait() == 1, (role, process.output())
            assert "fsync is off, so acknowledged writes can be lost" in process.output(), role
            assert "remove fsync from postgresql.conf" in process.output(), role
            assert "Traceback" not in process.output(), (role, process.output())


def test_connection__server_changed_since_the_start__is_refused(
    server: Server, connect: Connect
) -> None:
    with connect(server.url()) as wrapper:
        wrapper.close()
        with server.configured(full_page_writes="off"):
            with pytest.raises(OperationalError, match="full_page_writes is off"):
                wrapper.ensure_connection()
            assert wrapper.connection is None
        with wrapper.cursor() as cursor:
            cursor.execute("SELECT 1")


@pytest.mark.parametrize(
    ("setting", "value", "effect"),
    [
        ("fsync", "off", "can be lost in a crash"),
        ("synchronous_commit", "off", "can be lost in a crash"),
        ("full_page_writes", "off", "can damage pages"),
        ("standard_conforming_strings", "off", "read as escapes"),
        ("client_min_messages", "error", "appears to be safe"),
    ],
)
def test_server__unsafe_setting__is_refused_by_name(
    setting: str, value: str, effect: str, server: Server, connect: Connect
) -> None:
    with server.configured(**{setting: value}):
        message = refusal(connect, server.url())
    assert f"{setting} is {value}" in message
    assert effect in message
    assert f"remove {setting} from postgresql.conf and reload" in message


def test_server__synchronous_commit__is_accepted(server: Server, connect: Connect) -> None:
    for value in ("on", "local", "remote_write", "remote_apply"):
        url = server.url(options=f"-csynchronous_commit%3D{value}")
        with connect(url) as wrapper, wrapper.cursor() as cursor:
            cursor.execute("SHOW synchronous_commit")
            assert cursor.fetchone() == (value,)
            cursor.execute("SHOW lock_timeout")  # the timeouts are still set
            assert cursor.fetchone() == (f"{read_environment().lock_timeout_ms // 1000}s",)


@pytest.mark.parametrize(
    ("place", "remedy"),
    [
        ("DATABASE postgres", "ALTER DATABASE … RESET"),
        ("ROLE postgres", "ALTER ROLE … RESET"),
        ("ROLE postgres IN DATABASE postgres", "ALTER ROLE … IN DATABASE … RESET"),
        ("ROLE ALL", "ALTER ROLE ALL RESET"),
    ],
)
def test_server__durability_off_for_role_or_database__is_refused(
    place: str, remedy: str, server: Server, connect: Connect
) -> None:
    server.execute(f"ALTER {place} SET synchronous_commit = off")
    try:
        assert f"{remedy} synchronous_commit" in refusal(connect, server.url())
    finally:
        server.execute(f"ALTER {place} RESET synchronous_commit")
    with connect(server.url()):
        pass


def test_server__durability_off_in_the_url__is_refused(server: Server, connect: Connect) -> None:
    url = server.url(options="-csynchronous_commit%3Doff")
    assert "remove it from the options of DATABASE_URL" in refusal(connect, url)


def test_server__database_not_in_utf8__is_refused(server: Server, connect: Connect) -> None:
    server.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    assert "encoded in LATIN1" in refusal(connect, server.url(database="latin"))


def test_server__older_than_required__is_refused() -> None:
    class Info:
        server_version = 140_011

    class Old:
        info = Info()

    with pytest.raises(UnsafeServer, match="PostgreSQL 14; Commonhold requires 15 or newer"):
        check_server(Old())  # type: ignore[arg-type]


# Values in the log ---------------------------------------------------------------------------

# As an operator may have set them in order to see everything.
TALKATIVE = {
    "log_statement": "all",
    "log_min_duration_statement": "0",
    "log_min_error_statement": "debug5",
    "log_error_verbosity": "verbose",
    "log_parameter_max_length_on_error": "-1",
}


def provoke(wrapper: DatabaseWrapper, canary: str) -> None:
    """Statements that succeed and that fail, with `canary` as a literal and as a parameter."""
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT %s", [canary])
    for kind in (psycopg.ClientCursor, psycopg.Cursor):
        with kind(wrapper.connection) as cursor:
            cursor.execute("SELECT %s::text", [canary])
            with pytest.raises(psycopg.DataError):
                cursor.execute("SELECT %s::text::int", [canary])


def test_log__server_logs_everything_and_role_may_change_it__contains_no_value(
    server: Server, connect: Connect
) -> None:
    privilege = f"GRANT SET ON PARAMETER {', '.join(PRIVATE_LOG)} TO granted"
    with server.configured(**TALKATIVE):
        server.execute("CREATE ROLE granted LOGIN", privilege)
        for user in ("postgres", "granted"):
            with connect(server.url(user=user)) as wrapper:
                provoke(wrapper, f"canary-of-{user}")
            assert f"canary-of-{user}" not in server.log()
    assert privilege in server.log()  # the statements of others are logged


def test_log__role_may_not_change_it__check_and_start_warn(
    server: Server, connect: Connect, start: Start
) -> None:
    server.execute("CREATE ROLE app LOGIN", "CREATE DATABASE app OWNER app")
    url = server.url(user="app", database="app")
    with server.configured(**TALKATIVE):
        with connect(url) as wrapper:
            provoke(wrapper, "canary-of-app")
        assert "canary-of-app" in server.log()

        checked = start("manage.py", "check", "--database", "default", DATABASE_URL=url)
        assert checked.wait() == 0
        assert "commonhold.W001" in checked.output()
        assert "log_statement = all" in checked.output()
        assert "GRANT SET ON PARAMETER" in checked.output()
        assert "log_parameter_max_length_on_error" not in checked.output()  # any role may set it

        worker = start("-m", "project.processes", "worker", DATABASE_URL=url)
        worker.wait_for_output("database.logs_values")
        worker.kill_all()


def test_command__no_database_that_it_can_use__is_one_sentence(
    server: Server, start: Start
) -> None:
    token = ("manage.py", "create_token", "--role", "admin", "--name", "me")
    server.execute("CREATE DATABASE without_tables")
    nothing = f"postgresql://me:hunter2@127.0.0.1:{free_port()}/db"
    cases = {
        server.url(database="without_tables"): (
            "The database lacks migrations of this version: without_tables at "
        ),
        nothing: "Cannot reach the database db at 127.0.0.1:",
        server.url(database="missing"): 'database "missing" does not exist. Check DATABASE_URL.',
    }

    for url, said in cases.items():
        command = start(*token, DATABASE_URL=url)
        assert command.wait() == 1
        assert said in command.output()
        assert "Traceback" not in command.output()
        assert "hunter2" not in command.output()


def test_check__unsafe_server__is_an_error(server: Server, start: Start) -> None:
    arguments = ("manage.py", "check", "--database", "default", "--tag", "database")
    with server.configured(fsync="off"):
        checked = start(*arguments, DATABASE_URL=server.url())
        assert checked.wait() == 1
    assert "commonhold.E001" in checked.output()


def test_check__role_hides_its_values__reports_nothing(server: Server, start: Start) -> None:
    checked = start("manage.py", "check", "--database", "default", DATABASE_URL=server.url())
    assert checked.wait() == 0, checked.output()
    assert "no issues" in checked.output()
