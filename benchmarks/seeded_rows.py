"""The rows that fill a large database (seeding.py), by INSERT … SELECT over generate_series. They
have the form that the services produce."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_CHUNK = 200_000
# Large namespaces beside `facts`, which holds half of all entries.
_AREAS = 200
_AREA = "'area-' || lpad((power(n % 10007 * 7919 % 10007 / 10007.0, 3) * 200)::int::text, 3, '0')"
_THREAD = "'th-' || lpad(({n})::text, 6, '0')"
_ACTOR = "'agent-' || n % 50"
_AGENT = {"actor_kind": "'token'", "actor_id": "'1'", "actor_name": "'agent-1'"}


@dataclass(frozen=True)
class Size:
    entries: int
    threads: int
    messages: int
    value_mb: float
    # The age of the oldest row, instead of a week for the feed and a month for the other tables.
    days: int | None = None


class Seeding:
    """The statements. `n` numbers the rows of a step; the newest row has the highest number."""

    NUMBERED = (
        "entries",
        "changes",
        "audit",
        "threads",
        "messages",
        "runs",
        "run_reads",
        "tickets",
        "dispatches",
        "compactions",
        "webhook_deliveries",
        "storage_samples",
    )
    BULK = (*NUMBERED, "entry_revisions", "revisions", "state_values")

    cursor: Any

    def __init__(self, workspace: int, size: Size) -> None:
        self.workspace, self.size = workspace, size
        # Transaction ids that exist already, until burn_transactions uses others.
        self.first_xid, self.xids = 10, 10

    def burn_transactions(self) -> None:
        """Use one transaction id per ten writes, so that the rows have positions in the feed."""
        self.xids = max(self.size.entries // 10, 1)
        self.cursor.execute("SELECT pg_current_xact_id()::text::bigint")
        self.first_xid = self.cursor.fetchone()[0]
        self.cursor.execute(
            f"DO $$ BEGIN FOR n IN 1..{self.xids} LOOP"
            " PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$"
        )

    def advance_sequences(self) -> None:
        """To be called at the end, so that services can insert rows."""
        for table in self.NUMBERED:
            self.cursor.execute(
                f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}"
            )

    def next_id(self, table: str) -> int:
        self.cursor.execute(f"SELECT coalesce(max(id), 0) + 1 FROM {table}")
        number: int = self.cursor.fetchone()[0]
        return number

    def insert(
        self, table: str, columns: dict[str, str], count: int, source: str = "{series}"
    ) -> None:
        """Insert rows from `source` for n in [0, count), in chunks. Other columns get the workspace, or
        the model's default."""
        from django.apps import apps

        model = next(m for m in apps.get_models() if m._meta.db_table == table)
        given = dict(columns)
        for field in model._meta.concrete_fields:
            column = field.column
            if not column or column in given or field.primary_key:
                continue
            if column == "workspace_id":
                given[column] = str(self.workspace)
            elif field.has_default() and not field.has_db_default():
                given[column] = self.cursor.mogrify("%s", [field.get_default()])
            elif not field.null and not field.has_db_default():
                given[column] = "''"
        names = ", ".join(f'"{name}"' for name in given)
        for first in range(0, count, _CHUNK):
            last = min(first + _CHUNK, count) - 1
            rows = source.replace("{series}", f"generate_series({first}, {last}) AS n")
            self.cursor.execute(
                f"INSERT INTO {table} ({names}) SELECT {', '.join(given.values())} FROM {rows}"
            )

    def beside(self, table: str, public_id: str, name: str) -> str:
        """Return a join with the id of one row, as `name.first`."""
        return (
            f" CROSS JOIN (SELECT id AS first FROM {table}"
            f" WHERE workspace_id = {self.workspace} AND public_id = '{public_id}') {name}"
        )

    def at(self, count: int, days: int = 30) -> str:
        return f"now() - interval '{self.size.days or days} days' * (1 - (n + 1) / {count + 1}.0)"

    def xid(self, count: int) -> str:
        return f"({self.first_xid} + n::bigint * {self.xids} / {count})::text::xid8"

    def people(self) -> None:
        for table, name in (("users", "username"), ("state_keys", "name"), ("api_tokens", "name")):
            columns = {name: f"'bulk-{table}-' || n"}
            if table == "state_keys":
                columns |= {"schema": "'{}'", "default": "'null'", "scope": "'thread'"}
                columns |= {"merge": "'exclusive'", "reducer": "'replace'"}
            if table == "api_tokens":
                columns |= {"lookup": "'bulk' || n", "digest": "md5(n::text)", "role": "'editor'"}
            self.insert(table, columns, 300)
        self.cursor.execute(
            "INSERT INTO memberships (user_id, workspace_id, role)"
            f" SELECT id, {self.workspace}, 'viewer' FROM users WHERE username LIKE 'bulk-%'"
        )

    def namespaces(self) -> None:
        columns = {
            "name": "CASE n WHEN 0 THEN 'facts' ELSE 'area-' || lpad((n - 1)::text, 3, '0') END",
            "schema": """'{"type": "object"}'""",
            # Every tenth namespace was changed once; half of its entries were written before.
            "schema_version": "CASE WHEN n % 10 = 1 THEN 2 ELSE 1 END",
            "default": "'{}'",
        }
        self.insert("namespaces", columns, _AREAS + 2)

    def entries(self) -> None:
        count, first = self.size.entries, self.next_id("entries")
        digits = "lpad(n::text, 8, '0')"
        value = f"""'{{"title":"entry {"' || " + digits + " || '"}","owner":{{"team":'
            || n % 10 || ',"name":"agent ' || n % 50 || '"}},"n":' || n || ',"notes":"'
            || md5(n::text) || '"}}'"""
        self.insert(
            "entries",
            {
                "id": f"{first} + n",
                "namespace_id": "s.id",
                "key": f"""CASE WHEN n % 10 < 4 THEN 'thread::' || {self.thread()} || '-' || n
                    WHEN n % 10 < 6 THEN 'parent_thread::' || {self.thread()} || '-' || n
                    WHEN n % 10 = 6 THEN 'agent_type::helper-' || n
                    ELSE 'customer/' || left(md5(n::text), 6) || '/' || n END""",
                "value": f"CASE WHEN n % 100 <> 99 THEN ({value})::json END",
                "version": "CASE WHEN n % 100 = 99 THEN 2 WHEN n % 10 = 0 THEN 3 ELSE 1 END",
                "schema_version": "CASE WHEN n % 2 = 0 THEN s.schema_version ELSE 1 END",
                "deleted": "n % 100 = 99",
                "expires_at": "CASE WHEN n % 50 = 7 THEN now() + n % 500 * interval '1 hour' END",
                "tags": "CASE WHEN n % 1000 = 3 THEN ARRAY['vip'] ELSE '{}' END",
                "size_bytes": f"CASE WHEN n % 100 <> 99 THEN octet_length({value}) ELSE 0 END",
                "estimated_tokens": "40",
                "actor_kind": "'token'",
                "actor_name": _ACTOR,
                "created_at": self.at(count),
                "updated_at": self.at(count),
            },
            count,
            "{series} JOIN namespaces s ON s.workspace_id = "
            f"{self.workspace} AND s.name = CASE WHEN n % 2 = 0 THEN 'facts' ELSE "
            f"{_AREA} END ORDER BY n",
        )
        self.history(first, count)

    def thread(self) -> str:
        return _THREAD.format(n=f"n % {self.size.threads}")

    def history(self, first: int, count: int) -> None:
        """Insert the versions, changes and audit rows of the entries from `first` on."""
        entry = f"{{series}} CROSS JOIN LATERAL (SELECT * FROM entries WHERE id = {first} + n OFFSET 0) e"
        stamp = _AGENT | {"actor_name": "e.actor_name", "request_id": "'req-' || n / 5"}
        self.insert(
            "entry_revisions",
            stamp
            | {
                "entry_id": "e.id",
                "version": "v",
                "operation": "CASE WHEN e.deleted AND v = e.version THEN 'delete' ELSE 'put' END",
                "value": "CASE WHEN e.deleted AND v < e.version THEN '{}' ELSE e.value END",
                "schema_version": "e.schema_version",
                "size_bytes": "e.size_bytes",
                "at": "e.updated_at",
                "xid": self.xid(count),
            },
            count,
            f"{entry} CROSS JOIN LATERAL generate_series(1, e.version) v",
        )
        happened = {
            "namespace": "s.name",
            "key": "e.key",
            "version": "e.version",
            "actor_name": "e.actor_name",
        }
        kind = "'entry.' || CASE WHEN e.deleted THEN 'delete' ELSE 'put' END"
        source = f"{entry} JOIN namespaces s ON s.id = e.namespace_id ORDER BY n"
        changed = {"xid": self.xid(count), "at": self.at(count, 7), "kind": kind}
        self.insert("changes", happened | changed, count, source)
        audited = {"at": self.at(count), "action": kind}
        self.insert("audit", happened | stamp | audited, count, source)

    def threads(self) -> None:
        """Twenty messages, five revisions and two runs each. A hundred runs are stuck, a thousand
        are running."""
        count, first = self.size.threads, self.next_id("threads")
        run = self.next_id("runs")
        busy = f"n >= {count - 1100}"
        self.insert(
            "threads",
            {
                "id": f"{first} + n",
                "public_id": self.thread(),
                "resource_id": "'user-' || n % 20000",
                "title": "'Conversation ' || n",
                "revision": "5",
                "message_count": "20",
                "context_tokens": "2000",
                "active_run_id": f"CASE WHEN {busy} THEN {run} + 2 * n + 1 END",
                "latest_run_id": f"{run} + 2 * n + 1",
                # One thread has a thousand children, another one a thousand forks.
                "parent_id": f"CASE WHEN n BETWEEN 1 AND 1000 THEN {first} END",
                "forked_from": """CASE WHEN n BETWEEN 1001 AND 2000 THEN
                    '{"thread_id": "th-000001", "revision": 3, "message_count": 12}'::jsonb END""",
                "created_at": self.at(count),
                "updated_at": self.at(count),
            },
            count,
        )
        self.insert(
            "runs",
            {
                "id": f"{run} + n",
                "thread_id": f"{first} + n / 2",
                "public_id": "'run-' || lpad(n::text, 7, '0')",
                "agent_id": "'helper-' || n % 20",
                "status": f"CASE WHEN n % 2 = 0 OR NOT ({busy.replace('n >=', 'n / 2 >=')})"
                " THEN 'done' WHEN n % 4 = 1 THEN 'running' ELSE 'waiting' END",
                "termination_reason": """CASE WHEN n % 2 = 0 THEN '{"kind": "natural_end"}'::jsonb END""",
                "step_count": "2",
                "last_revision": "5",
                "revision_count": "2",
                "lease_expires_at": f"CASE WHEN n / 2 >= {count - 1100} AND n % 4 = 1 THEN now()"
                " + CASE WHEN n % 20 = 1 THEN -interval '1 hour' ELSE interval '30 days' END END",
                "created_at": self.at(2 * count),
                "finished_at": self.at(2 * count),
                "updated_at": self.at(2 * count),
            },
            2 * count,
        )
        self.log(f"{first} + n / 20", "n % 20 + 1", 20 * count)
        self.revisions(f"{first} + n / 5", f"{run} + 2 * (n / 5)", "n % 5 + 1", "'plan'", 5 * count)
        self.insert(
            "state_values",
            {
                "thread_id": f"{first} + n / 5",
                "key": "'plan'",
                "valid_from": "n % 5 + 1",
                "valid_to": "CASE WHEN n % 5 < 4 THEN n % 5 + 2 END",
                "value": """('{"step":' || n % 5 || ',"text":"' || md5(n::text) || '"}')::json""",
                "scope": "'thread'",
            },
            5 * count,
        )

    def log(self, thread: str, seq: str, count: int) -> None:
        """Insert rounds of a question, a tool call, its result and an answer."""
        place = f"({seq})"
        self.insert(
            "messages",
            {
                "thread_id": thread,
                "seq": seq,
                "public_id": f"'m' || {place}",
                "role": f"(ARRAY['assistant', 'user', 'assistant', 'tool'])[{place} % 4 + 1]",
                "body": f"""(CASE {place} % 4
                    WHEN 1 THEN '{{"role":"user","content":"Question ' || {place} || ' '
                        || repeat(md5(n::text) || ' ', 8) || '"}}'
                    WHEN 2 THEN '{{"role":"assistant","content":null,"tool_calls":[{{"id":"c' || {place}
                        || '","type":"function","function":{{"name":"find_trip","arguments":"{{}}"}}}}]}}'
                    WHEN 3 THEN '{{"role":"tool","tool_call_id":"c' || {place} - 1
                        || '","content":"' || repeat(md5(n::text) || ' ', 12) || '"}}'
                    ELSE '{{"role":"assistant","content":"Answer ' || {place} || ' '
                        || repeat(md5(n::text) || ' ', 10) || '"}}' END)::json""",
                "opens": f"CASE WHEN {place} % 4 = 2 THEN jsonb_build_array('c' || {place}) ELSE '[]' END",
                "answers": f"CASE WHEN {place} % 4 = 3 THEN 'c' || {place} - 1 END",
                "estimated_tokens": "100",
                "created_at": self.at(count),
            },
            count,
        )

    def revisions(self, thread: str, run: str, number: str, key: str, count: int) -> None:
        self.insert(
            "revisions",
            {
                "thread_id": thread,
                "number": number,
                "kind": "'commit'",
                "run_id": run,
                "step": number,
                "touched": f"ARRAY[{key}]",
                "message_count": f"least({number} * 4, 20)"
                if count != self.size.messages
                else number,
                "label": "CASE WHEN n % 997 = 5 THEN 'mark ' || n ELSE '' END",
                **_AGENT,
                "at": self.at(count),
            },
            count,
        )

    def long_thread(self) -> None:
        """One thread with many messages and revisions, whose one run read as many entries; and one
        entry with as many versions and readers."""
        count, thread, run = self.size.messages, self.next_id("threads"), self.next_id("runs")
        self.insert(
            "runs",
            {
                "id": str(run),
                "thread_id": str(thread),
                "public_id": "'r-long'",
                "agent_id": "'helper-1'",
                "status": "'running'",
                "step_count": str(count),
                "last_revision": str(count),
                "revision_count": str(count),
                "start_revision": "1",
                "lease_expires_at": "now() + interval '30 days'",
            },
            1,
        )
        self.insert(
            "threads",
            {
                "id": str(thread),
                "public_id": "'long'",
                "title": "'A long story'",
                "revision": str(count),
                "message_count": str(count),
                "context_tokens": str(count * 100),
                "active_run_id": str(run),
                "latest_run_id": str(run),
            },
            1,
        )
        self.log(str(thread), "n + 1", count)
        self.revisions(str(thread), str(run), "n + 1", "'key-' || n % 12", count)
        self.insert(
            "state_values",
            {
                "thread_id": str(thread),
                "key": "'key-' || n % 12",
                "valid_from": "n + 1",
                "valid_to": f"CASE WHEN n + 13 <= {count} THEN n + 13 END",
                "value": """('{"step":' || n || ',"text":"' || repeat(md5(n::text), 30) || '"}')::json""",
                "scope": "'thread'",
            },
            count,
        )
        self.insert(
            "entries",
            {
                "id": (entry := str(self.next_id("entries"))),
                "namespace_id": "s.id",
                "key": "'hot'",
                "value": f'(\'{{"n":\' || {count} - 1 || \',"title":"as ever"}}\')::json',
                "version": str(count),
                "schema_version": "1",
                "size_bytes": "7",
                "estimated_tokens": "3",
                "actor_kind": "'token'",
                "actor_name": "'agent-1'",
            },
            1,
            f"{{series}} JOIN namespaces s ON s.workspace_id = {self.workspace} AND s.name = 'facts'",
        )
        self.insert(
            "entry_revisions",
            {
                "entry_id": entry,
                "version": "n + 1",
                "operation": "'put'",
                "value": '(\'{"n":\' || n || \',"title":"as ever"}\')::json',
                "schema_version": "1",
                "size_bytes": "9",
                **_AGENT,
                "at": self.at(count),
            },
            count,
        )
        self.insert(
            "run_reads",
            {
                "thread_id": str(thread),
                "run_id": str(run),
                "revision": "n + 1",
                "step": "n + 1",
                "namespace": "'facts'",
                "key": "'hot'",
                "version": f"CASE WHEN n % 2 = 0 THEN 5 ELSE {count} END",
                "held": str(count),
            },
            count,
        )

    def work(self) -> None:
        """Tickets, the mailbox, compactions, deliveries: most of them finished."""
        count = self.size.threads
        made = {"created_at": self.at(count)}
        ended = {"finished_at": self.at(count)}
        waits = f"n >= {count - 1100} AND n % 2 = 1"
        self.insert(
            "tickets",
            made
            | {
                "run_id": "r.first + 2 * n + 1",
                "public_id": "'ticket-' || n",
                "tool_name": "'tool-' || n % 9",
                "arguments": "'{\"amount\": 12}'",
                "reason": "'Above the limit.'",
                "status": f"CASE WHEN {waits} THEN 'pending' ELSE 'resumed' END",
            },
            count,
            "{series}" + self.beside("runs", "run-0000000", "r"),
        )
        threads = "{series}" + self.beside("threads", "th-000000", "t")
        self.insert(
            "dispatches",
            made
            | {
                "thread_id": "t.first + n",
                "public_id": "'dispatch-' || n",
                "agent_id": "'helper-' || n % 20",
                "payload": '\'{"task": "check"}\'',
                "status": "CASE n % 100 WHEN 1 THEN 'Queued' WHEN 2 THEN 'DeadLetter' ELSE 'Acked' END",
                "finished_at": f"CASE WHEN n % 100 <> 1 THEN {made['created_at']} END",
            },
            count,
            threads,
        )
        self.cursor.execute(
            "INSERT INTO mailboxes (thread_id, workspace_id, epoch, next_id, next_priority, next_agent)"
            " SELECT thread_id, workspace_id, 0, id, priority, agent_id FROM dispatches"
            " WHERE status = 'Queued' AND public_id LIKE 'dispatch-%'"
        )
        self.insert(
            "compactions",
            made
            | ended
            | {
                "thread_id": "t.first + n",
                "public_id": "'compaction-' || n",
                "kind": "'context'",
                "trigger": "'threshold'",
                "requested_by": "'agent-1'",
                "started_at": made["created_at"],
                "status": "(ARRAY['done', 'done', 'done', 'skipped', 'failed'])[n % 5 + 1]",
                "tokens_before": "9000",
                "tokens_after": "2000",
                "summary_text": "repeat('Said. ', 60)",
            },
            count // 2,
            threads,
        )
        self.insert(
            "webhook_deliveries",
            made
            | ended
            | {
                "webhook_id": "h.first",
                "public_id": "'delivery-' || n",
                "change_xid": "1",
                "change_id": "n + 100",
                "event_id": "'1-' || n",
                "kind": "'entry.put'",
                "subject": "'facts/k' || n",
                "body": "'{}'",
                "status": "CASE WHEN n % 50 = 1 THEN 'dead' ELSE 'delivered' END",
                "attempts": "1",
            },
            count,
            "{series}" + self.beside("webhooks", "hook1", "h"),
        )

    def samples(self) -> None:
        """Storage samples of ninety days, for every namespace and a hundred threads."""
        columns = {
            "day": "current_date - n % 90 - 1",
            "measured_at": "now()",
            "total_bytes": "1000000 + n",
            "total_rows": "1000",
        }
        self.insert(
            "storage_samples",
            columns | {"namespace_id": "s.id", "thread_id": "NULL"},
            90,
            "{series} CROSS JOIN (SELECT id FROM namespaces WHERE name LIKE 'area-%') s",
        )
        self.insert(
            "storage_samples",
            columns | {"namespace_id": "NULL", "thread_id": "t.id"},
            90,
            "{series} CROSS JOIN (SELECT id FROM threads WHERE public_id LIKE 'th-0000%') t",
        )
