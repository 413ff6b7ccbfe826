"""Template tags of every page: icons, times, sizes, pills, URLs of entries."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from state_admin.domain.lifecycle import format_duration
from state_admin.domain.moments import readable
from state_admin.web import addresses

register = template.Library()

_LEAST_SHOWN: Final = Decimal("0.0001")

register.simple_tag(addresses.entry_url, name="entry_url")
register.simple_tag(addresses.entry_action_url, name="entry_action_url")
register.simple_tag(addresses.namespace_url, name="namespace_url")
register.simple_tag(addresses.with_query, name="link_to")


@register.simple_tag
def icon(name: str) -> SafeString:
    """A symbol of static/icons.svg. Decoration only: its text is beside it, or in aria-label."""
    return format_html(
        '<svg class="icon" aria-hidden="true"><use href="{}#{}"></use></svg>',
        static("icons.svg"),
        name,
    )


@register.simple_tag
def pill(state: str, text: str = "") -> SafeString:
    """A coloured label. `state`: running done stuck failed waiting note; "" is neutral."""
    return format_html('<span class="pill" data-state="{}">{}</span>', state, text or state)


@register.simple_tag
def job_pill(status: str) -> SafeString:
    """The status of a compaction or revert."""
    states = {"queued": "running", "running": "running", "done": "done", "failed": "failed"}
    return pill(states.get(status, ""), status)


@register.simple_tag
def worker_pill(state: str) -> SafeString:
    """The label "worker", coloured by its state (web/health.py)."""
    return pill({"running": "done", "starting": "waiting"}.get(state, "failed"), "worker")


@register.simple_block_tag
def scroll_table(content: str, label: str, classes: str = "") -> SafeString:
    """A table with the parts in the block, in a region that scrolls horizontally, also with the keyboard: `{% scroll_table "Queues" %}<thead>…</tbody>{% endscroll_table %}`."""
    return format_html(
        '<div class="scroll" tabindex="0" role="region" aria-label="{}"><table{}>{}</table></div>',
        label,
        format_html(' class="{}"', classes) if classes else "",
        content,
    )


@register.filter
def when(moment: datetime | None) -> SafeString | str:
    """ "2 minutes ago", updated by the browser; the exact time on hover and without JavaScript."""
    if moment is None:
        return "—"
    utc = moment.astimezone(UTC)
    absolute = readable(moment)
    return format_html(
        '<relative-time datetime="{}" title="{}" no-title tense="{}">{}</relative-time>',
        utc.isoformat(),
        absolute,
        "future" if utc > datetime.now(UTC) else "past",
        absolute,
    )


@register.filter
def effects(report: Mapping[str, int]) -> str:
    """What a sweep did, without zeros: "2 workspaces, 1 login link"."""
    return ", ".join(
        f"{count:,} {_singular(name) if count == 1 else name}".replace("_", " ")
        for name, count in report.items()
        if count
    )


def _singular(name: str) -> str:
    ending, single = next(
        each for each in (("ies", "y"), ("xes", "x"), ("s", ""), ("", "")) if name.endswith(each[0])
    )
    return name.removesuffix(ending) + single


@register.filter
def lasting(since: datetime) -> str:
    """The time since `since`, for elements that are polled: "2 min"."""
    minutes = int((datetime.now(UTC) - since).total_seconds()) // 60
    return f"{minutes:,} min" if minutes else "less than a minute"


@register.filter
def lasted(milliseconds: float) -> str:
    """A duration as text: "0.4 ms", "120 ms", "3.1 s", "12.0 min"."""
    if milliseconds < 1000:
        return f"{milliseconds:.1f} ms" if milliseconds < 10 else f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    return f"{seconds:.1f} s" if seconds < 600 else f"{seconds / 60:,.1f} min"


@register.filter
def how_long(duration: timedelta) -> str:
    """A duration as text: "14 ms", "3.1 s", "14 min", "3 h"."""
    seconds = duration.total_seconds()
    return lasted(seconds * 1000) if seconds < 600 else format_duration(duration)


@register.filter
def period(seconds: int) -> str:
    """A setting of seconds as text, in the largest unit that is exact: "90 s", "3 h", "7 days"."""
    for unit, length in (("day,days", 86_400), ("h,h", 3600), ("min,min", 60)):
        if seconds and seconds % length == 0:
            return plural(seconds // length, unit)
    return f"{seconds:,} s"


@register.filter
def clock(moment: datetime | None) -> str:
    """The exact time, in UTC to the millisecond."""
    if moment is None:
        return "—"
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + " UTC"


@register.filter
def size(count: int | None) -> str:
    """Bytes as text: "812 B", "4.9 kB", "1.2 MB"."""
    if count is None:
        return "—"
    if count < 1000:
        return f"{count} B"
    number = float(count)
    for unit in ("kB", "MB", "GB"):
        number /= 1000
        if number < 999.95:
            return f"{number:.1f} {unit}"
    return f"{number / 1000:,.1f} TB"


@register.filter
def number(count: int | None) -> str:
    """12480 → "12,480"."""
    return "—" if count is None else f"{count:,}"


@register.filter
def tokens(count: int | None) -> str:
    """Estimated tokens, and other large numbers: "812", "12.5 k", "40 k", "1.2 M"."""
    if count is None:
        return "—"
    if count < 10_000:
        return f"{count:,}"
    number, unit = (count / 1000, "k") if count < 1_000_000 else (count / 1_000_000, "M")
    return f"{f'{number:,.1f}'.removesuffix('.0')} {unit}"


@register.filter
def dollars(amount: Decimal, sign: str = "") -> str:
    """An amount in USD, after `sign`. A tiny one is not shown as nothing."""
    if 0 < amount < _LEAST_SHOWN:
        return f"< ${_LEAST_SHOWN}"
    return f"{sign}${amount:,.4f}"


@register.filter
def code_spans(text: str) -> SafeString:
    """Escaped text in which `this` becomes code, as in Markdown."""
    parts = (
        format_html("<code>{}</code>" if place % 2 else "{}", part)
        for place, part in enumerate(text.split("`"))
    )
    return SafeString("".join(parts))


@register.filter
def as_csv(json_url: str) -> str:
    """The URL of a list's CSV, from that of its JSON (web/lists.py)."""
    route, mark, query = json_url.partition("?")
    return f"{route.removesuffix('.json')}.csv{mark}{query}"


# Values of the API that do not read as words.
_WORDS = {
    "Acked": "acknowledged",
    "DeadLetter": "dead letter",
    "dead": "dead letter",
    # Who requested a compaction.
    "hand": "on request",
    "schedule": "on schedule",
    "threshold": "automatic",
}


@register.filter
def words(value: str) -> str:
    """A status or a kind of the API as people read it: "DeadLetter" → "dead letter"."""
    return _WORDS.get(value, value.lower())


@register.filter
def plural(count: int, forms: str) -> str:
    """`3|plural:"entry,entries"` → "3 entries"."""
    one, many = forms.split(",")
    return f"{count:,} {one if count == 1 else many}"
