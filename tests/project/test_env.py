"""Settings from the environment, and the data folder, which other users may not read or own."""

from __future__ import annotations

from pathlib import Path

import pytest

from project.env import BadSetting, data_dir, list_settings, read_environment

BROKERS = (
    "BROKER_URL must start with redis://, rediss://, amqp:// or amqps://; "
    "unset it to queue jobs in PostgreSQL"
)
BROKER_FORM = (
    "BROKER_URL must have the form redis://user:password@host:6379/0, with a port from 1 to 65535 "
    "(special characters of the password percent-encoded)"
)
REDIS_DATABASE = (
    "BROKER_URL must end with the number of a Redis database, such as /0, or with the port"
)
FORM = "must have the form https://state.example.com, without a path"

HOSTS = (
    "ALLOWED_HOSTS must list host names such as state.example.com, without scheme, port and path; "
    "write an IPv6 address as [::1]"
)


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "parent" / "data"
    monkeypatch.setenv("COMMONHOLD_DATA_DIR", str(path))
    return path


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_data_dir__missing__is_created_for_its_owner(configured: Path) -> None:
    assert data_dir() == configured
    assert mode(configured) == 0o700


@pytest.mark.parametrize("before", [0o755, 0o750, 0o777, 0o722])
def test_data_dir__readable_by_others__is_restricted(before: int, configured: Path) -> None:
    configured.mkdir(parents=True)
    configured.chmod(before)
    data_dir()
    assert mode(configured) == 0o700


def test_data_dir__traversable_for_the_user_of_postgresql__keeps_its_mode(configured: Path) -> None:
    configured.mkdir(parents=True)
    configured.chmod(0o711)
    data_dir()
    assert mode(configured) == 0o711


def test_data_dir__shared_by_all_users__is_refused(configured: Path) -> None:
    configured.mkdir(parents=True)
    configured.chmod(0o1777)
    with pytest.raises(BadSetting, match="is shared by all users; set COMMONHOLD_DATA_DIR"):
        data_dir()
    assert mode(configured) == 0o1777


def test_data_dir__of_another_user__is_refused(
    configured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured.mkdir(parents=True)
    configured.chmod(0o777)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "chmod", refuse)
    with pytest.raises(BadSetting, match="accessible to other users"):
        data_dir()


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("PORT", "eighty", "PORT must be an integer from 1 to 65535"),
        ("PORT", "0", "PORT must be an integer from 1 to 65535"),
        ("WEB_WORKERS", "0", "WEB_WORKERS must be an integer from 1 to 256"),
        *(
            (name, text, f"{name} must be {kind}")
            for text in ("2147483648", "1e300", "inf")
            for name, kind in {
                "BROKER_VISIBILITY_SECONDS": "an integer from 1 to 2147483647",
                "SESSION_COOKIE_AGE": "an integer from 1 to 2147483647",
                "WEBHOOK_TIMEOUT_SECONDS": "a number above 0, at most 2147483647",
            }.items()
        ),
        ("BODY_IDLE_SECONDS", "0", "BODY_IDLE_SECONDS must be a number above 0"),
        ("LOG_JSON", "perhaps", "LOG_JSON must be true or false"),
        ("LOGIN_TOTP", "yes", "LOGIN_TOTP must be off, optional or required"),
        ("SUMMARY_DAILY_USD", "five", "SUMMARY_DAILY_USD must be a number from 0"),
        ("SUMMARY_DAILY_USD", "NaN", "SUMMARY_DAILY_USD must be a number from 0"),
        ("SUMMARY_DAILY_USD", "sNaN", "SUMMARY_DAILY_USD must be a number from 0"),
        ("SUMMARY_DAILY_USD", "Infinity", "SUMMARY_DAILY_USD must be a number from 0"),
        ("SUMMARY_DAILY_USD", "-1", "SUMMARY_DAILY_USD must be a number from 0"),
        ("SECURE_HSTS_SECONDS", "-5", "SECURE_HSTS_SECONDS must be an integer from 0"),
        ("SITE_URL", "state.example.com", f"SITE_URL {FORM}"),
        ("SITE_URL", "https://example.com/state", f"SITE_URL {FORM}"),
        ("SITE_URL", "https://:443", f"SITE_URL {FORM}"),
        ("SITE_URL", "https://state.example.com:https", f"SITE_URL {FORM}"),
        ("SITE_URL", "https://me:hunter2@state.example.com", f"SITE_URL {FORM}"),
        ("ALLOWED_HOSTS", "https://state.example.com", HOSTS),
        ("ALLOWED_HOSTS", "a.example,state.example.com:8000", HOSTS),
        ("ALLOWED_HOSTS", "state.example.com/", HOSTS),
        ("ALLOWED_HOSTS", "::1", HOSTS),
        ("ALLOWED_HOSTS", "[::1]:8000", HOSTS),
        ("CORS_ORIGINS", "https://a.example, https://b.example/", f"CORS_ORIGINS {FORM}"),
        ("CSRF_TRUSTED_ORIGINS", "a.example", f"CSRF_TRUSTED_ORIGINS {FORM}"),
        ("BROKER_URL", "http://me:hunter2@x", BROKERS),
        ("BROKER_URL", "nonsense", BROKERS),
        ("BROKER_URL", "redis:/x", BROKERS),
        ("BROKER_URL", "memory://", BROKERS),
        ("BROKER_URL", "pgmq://elsewhere/db", BROKERS),
        ("BROKER_URL", "redis://localhost:abc/0", BROKER_FORM),
        ("BROKER_URL", "amqp://me:hunter2@x:65536", BROKER_FORM),
        ("BROKER_URL", "amqp://a:5672;amqp://b:abc", BROKER_FORM),
        ("BROKER_URL", "redis://:hunter/2@x", BROKER_FORM),
        ("BROKER_URL", "redis://x/jobs", REDIS_DATABASE),
        ("CELL", "eu-1", "CELL must be text that matches `^[a-z][a-z0-9]{0,7}$`"),
        ("CELL", "eu1234567", "CELL must be text that matches `^[a-z][a-z0-9]{0,7}$`"),
    ],
)
def test_read_environment__invalid_value__names_the_variable(
    name: str, text: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(BadSetting) as caught:
        read_environment()
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    "text",
    [
        "redis://",
        "rediss://:p%2Fw@x:6380/1?ssl_cert_reqs=required",
        "amqp://a:5672//;amqp://b/jobs",
    ],
)
def test_read_environment__url_of_a_broker__is_accepted(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKER_URL", text)
    assert read_environment().broker_url == text


def test_read_environment__patterns_of_hosts__are_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALLOWED_HOSTS", "*,.example.com,10.0.0.1,[::1],a_b")
    assert read_environment().allowed_hosts == ("*", ".example.com", "10.0.0.1", "[::1]", "a_b")


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("STATEMENT", 2**31 - 1),  # that of PostgreSQL
        ("WEB_STATEMENT", 2**31 - 1),
        ("IDLE_IN_TRANSACTION", 60_000),
        ("LOCK", 2**31 - 1),
        ("STANDBY", 2**31 - 1),
    ],
)
def test_read_environment__timeout__has_a_maximum(
    name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{name}_TIMEOUT_MS", str(most))
    read_environment()
    monkeypatch.setenv(f"{name}_TIMEOUT_MS", str(most + 1))
    with pytest.raises(BadSetting, match=f"{name}_TIMEOUT_MS must be an integer from 1 to {most}"):
        read_environment()


@pytest.mark.parametrize("name", ["WEB_WORKERS", "WEB_THREADS", "WORKER_THREADS"])
def test_read_environment__processes_and_threads__have_a_maximum(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "256")
    read_environment()
    for text in ("0", "257", "1000000"):
        monkeypatch.setenv(name, text)
        with pytest.raises(BadSetting, match=f"^{name} must be an integer from 1 to 256$"):
            read_environment()


@pytest.mark.parametrize("text", ["1e300", "99999999999", "876001", "inf", "nan"])
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("CHANGE_RETENTION_DAYS", "an integer from 1 to 36500"),
        ("DISPATCH_DEAD_RETENTION_DAYS", "a number from 0 to 36500"),
        ("DISPATCH_RETENTION_HOURS", "a number from 0 to 876000"),
        ("STORAGE_RETENTION_DAYS", "a number from 0 to 36500"),
        ("WEBHOOK_DEAD_RETENTION_DAYS", "a number from 0 to 36500"),
        ("WEBHOOK_DISABLE_AFTER_HOURS", "a number above 0, at most 876000"),
        ("WEBHOOK_RETENTION_DAYS", "a number from 0 to 36500"),
    ],
)
def test_read_environment__duration_above_100_years__is_refused(
    name: str, kind: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(BadSetting) as caught:
        read_environment()
    assert str(caught.value) == f"{name} must be {kind}"


def test_read_environment__list__is_split_at_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALLOWED_HOSTS", " a.example, b.example ,")
    assert read_environment().allowed_hosts == ("a.example", "b.example")


def test_read_environment__empty_variable__is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "")
    monkeypatch.setenv("DATABASE_URL", " ")
    assert (read_environment().port, read_environment().database_url) == (8000, None)


def test_read_environment__secret_in_a_file__has_priority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "token"
    path.write_text("from-the-file\n")
    monkeypatch.setenv("METRICS_TOKEN", "from-the-environment")
    monkeypatch.setenv("METRICS_TOKEN_FILE", str(path))
    assert read_environment().metrics_token == "from-the-file"
    path.unlink()
    with pytest.raises(BadSetting, match="METRICS_TOKEN_FILE names: No such file"):
        read_environment()


@pytest.mark.parametrize("text", ["first,second", "first, second\n", "first\nsecond\n"])
def test_read_environment__list_in_a_file__is_split_at_commas_and_lines(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "keys"
    path.write_text(text)
    monkeypatch.setenv("SECRET_KEY_FALLBACKS_FILE", str(path))
    assert read_environment().secret_key_fallbacks == ("first", "second")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("DATABASE_URL", ""),
        ("SECRET_KEY", "\n"),
        ("METRICS_TOKEN", " \n"),
        ("CONFIG_SECRET_KEYS", ",\n"),
    ],
)
def test_read_environment__empty_file_of_a_secret__is_refused(
    name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "secret"
    path.write_text(text)
    monkeypatch.setenv(f"{name}_FILE", str(path))
    with pytest.raises(BadSetting) as caught:
        read_environment()
    assert str(caught.value) == f"{path}, which {name}_FILE names, is empty"


def test_list_settings__each__has_a_description_and_a_valid_section() -> None:
    settings = {each.name: each for each in list_settings()}
    assert settings["PORT"].section == "Web server"
    assert all(each.description.endswith(".") for each in settings.values())
    sections = [each.section for each in settings.values() if each.section]
    assert len(sections) == len(set(sections)) == 12


@pytest.mark.parametrize(
    "text", ["http://localhost:8000", "http://[::1]:8000", "https://state.example.com/"]
)
def test_read_environment__site_url__may_have_a_port_and_end_with_a_slash(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_URL", text)
    assert read_environment().site_url == text
