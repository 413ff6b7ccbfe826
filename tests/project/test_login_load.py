"""Many sign-ins at once on a real server: the API responds, and a user without failures can sign
in."""

from __future__ import annotations

import http.client
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import pytest

from project.hashing import MOST_WAITING
from state_admin.models import LoginAttempt
from state_admin.services.logins import set_password
from tests.builders import Person
from tests.patience import PATIENCE
from tests.project.conftest import Start
from tests.project.running import Running, wait_for
from tests.streams.listening import web_on_this_database

pytestmark = pytest.mark.django_db(transaction=True)

GOOD = "correct horse battery staple"
CSRF = "c" * 32
ATTACKERS = 24


def sign_in(server: Running, name: str, password: str, address: str) -> int:
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    form = {"username": name, "password": password, "csrfmiddlewaretoken": CSRF}
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Cookie": f"commonhold_csrf={CSRF}",
        "X-Forwarded-For": address,
    }
    try:
        client.request("POST", "/login", urlencode(form), headers)
        return client.getresponse().status
    finally:
        client.close()


def test_login__hashing_blocked__api_responds_and_a_user_signs_in(
    alice: Person, start: Start, folder: Path
) -> None:
    set_password(user=alice.user, password=GOOD)
    addresses = [f"10.0.0.{number}" for number in range(ATTACKERS)]
    LoginAttempt.objects.bulk_create(
        LoginAttempt(username="nobody", address=address) for address in addresses
    )
    go = folder / "hash"
    server = web_on_this_database(
        start,
        DJANGO_SETTINGS_MODULE="tests.project.sample_login",
        HASHING=str(go),
        WEB_WORKERS="1",
        WEB_THREADS="2",
        TRUST_PROXY_HEADERS="true",
    )

    with ThreadPoolExecutor(ATTACKERS + 1) as pool:
        attacks = [pool.submit(sign_in, server, "nobody", "x", addresses[0])]
        # Its thread has a low priority: other requests would fill the queue before it takes the
        # first.
        wait_for(Path(f"{go}.started").exists, "the first hash has begun")
        attacks += [pool.submit(sign_in, server, "nobody", "x", each) for each in addresses[1:]]

        def refused() -> int:
            results = [each.result() for each in attacks if each.done()]
            assert set(results) <= {503}
            return len(results)

        wait_for(lambda: refused() == ATTACKERS - MOST_WAITING - 1, "the queue is full")
        for _ in range(10):
            token = {"Authorization": f"Bearer {alice.token}"}
            assert server.get("/api/v1/me", **token)[0] == 200
        person: Future[int] = pool.submit(sign_in, server, "alice", GOOD, "203.0.113.7")
        wait_for(lambda: refused() == ATTACKERS - MOST_WAITING, "one attacker lost its place")
        assert not person.done()
        go.touch()
        assert person.result() == 302
        assert sorted(each.result() for each in attacks) == [422] * 8 + [503] * 16
