"""Compaction policies: their fields, how the policies of several scopes are combined, and how a
model's context window limits them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Final

from .values import JSON, Fault, FaultError, pointer_of

MODES: Final = ("keep_recent_raw_suffix", "compact_to_safe_frontier")
EXTRACTIVE: Final = "extractive"
BY_MODEL: Final = "model"
LONGEST_PROMPT: Final = 8_000
# Number of a thread's newest snapshots that a manual compaction keeps if no policy sets one.
KEEP_LAST: Final = 100


class BadPolicy(FaultError):
    """A policy is not valid. `faults` point into it."""


@dataclass(frozen=True)
class Policy:
    """When and how a thread's context is compacted. Sizes in estimated tokens.

    `autocompact_threshold` None: no automatic compaction by size. `every_hours` None: none by time;
    else a thread with new messages is compacted when its last compaction is older than that.
    `summarizer` None: the server's default; "model": the model that `summary_model` names, with the
    instructions `prompt` (None: the built-in ones), and `fallback` if the model fails (None: no
    summary then). `snapshot_keep_last` None: scheduled compactions remove no snapshots, and manual
    ones keep KEEP_LAST.
    """

    max_context_tokens: int = 200_000
    max_output_tokens: int = 16_384
    autocompact_threshold: int | None = None
    every_hours: int | None = None
    mode: str = MODES[0]
    raw_suffix_messages: int = 2
    min_recent_messages: int = 10
    min_gain_tokens: int = 1_024
    min_savings_ratio: float = 0.3
    summarizer: str | None = None
    summary_model: str | None = None
    summary_max_tokens: int = 1_024
    prompt: str | None = None
    fallback: str | None = None
    snapshot_keep_last: int | None = None
    snapshot_keep_every: int | None = None

    @classmethod
    def from_json(cls, body: JSON) -> Policy:
        """The policy with these fields, and the defaults for all others. Raises BadPolicy."""
        if not isinstance(body, dict):
            raise BadPolicy([Fault("", "a policy must be an object")])
        faults = list(_faults(body))
        if faults:
            raise BadPolicy(faults)
        return cls(**body)

    def to_json(self) -> dict[str, JSON]:
        """All fields, as `from_json` accepts them."""
        return asdict(self)

    def narrowed(
        self, max_context_tokens: int | None = None, max_output_tokens: int | None = None
    ) -> Policy:
        """The policy within the limits of a model: the threshold is at most the window minus the
        output tokens, and None if nothing remains."""
        window = min(self.max_context_tokens, max_context_tokens or self.max_context_tokens)
        answer = min(self.max_output_tokens, max_output_tokens or self.max_output_tokens, window)
        threshold = self.autocompact_threshold
        if threshold is not None:
            threshold = min(threshold, window - answer) or None
        return replace(
            self,
            max_context_tokens=window,
            max_output_tokens=answer,
            autocompact_threshold=threshold,
        )

    @property
    def suffix(self) -> int:
        """How many of the newest messages are retained."""
        return self.raw_suffix_messages if self.mode == MODES[0] else self.min_recent_messages


FIELDS: Final = tuple(field.name for field in fields(Policy))
# Data that these remove cannot be restored.
DESTRUCTIVE: Final = ("snapshot_keep_last", "snapshot_keep_every")


@dataclass(frozen=True)
class EffectivePolicy:
    """The policy that applies, and the source of each field: "default", the name of a layer, or
    "model" if the model's window lowered it."""

    policy: Policy
    sources: dict[str, str]


def effective(
    layers: Sequence[tuple[str, Mapping[str, JSON]]],
    max_context_tokens: int | None = None,
    max_output_tokens: int | None = None,
) -> EffectivePolicy:
    """Combine policies field by field, later layers over earlier ones and the default, and limit
    the result to a model's window. A field that is null counts: it resets what an earlier layer
    set."""
    merged: dict[str, JSON] = {}
    sources = dict.fromkeys(FIELDS, "default")
    for name, layer in layers:
        merged |= layer
        sources |= dict.fromkeys(layer, name)
    whole = Policy.from_json(merged)
    policy = whole.narrowed(max_context_tokens, max_output_tokens)
    narrower = [name for name in FIELDS if getattr(policy, name) != getattr(whole, name)]
    return EffectivePolicy(policy, sources | dict.fromkeys(narrower, "model"))


_COUNTS: Final = {
    "max_context_tokens": 1,
    "max_output_tokens": 1,
    "raw_suffix_messages": 0,
    "min_recent_messages": 0,
    "min_gain_tokens": 0,
    "summary_max_tokens": 1,
    "autocompact_threshold": 1,
    "every_hours": 1,
    **dict.fromkeys(DESTRUCTIVE, 1),
}
_MOST: Final = {"every_hours": 8_760}
_OPTIONAL: Final = {each.name for each in fields(Policy) if each.default is None}
_LONGEST: Final = {"summarizer": 64, "summary_model": 128, "prompt": LONGEST_PROMPT}


def _faults(body: dict[str, JSON]) -> Iterator[Fault]:
    for name, value in body.items():
        place = pointer_of(name)
        if name not in FIELDS:
            yield Fault(place, f"unknown field; must be one of {', '.join(sorted(FIELDS))}")
        elif value is None and name in _OPTIONAL:
            continue
        elif name in _COUNTS:
            least, most = _COUNTS[name], _MOST.get(name)
            if type(value) is not int or not least <= value <= (most or (1 << 53) - 1):
                upto = f" and at most {most}" if most else ""
                yield Fault(place, f"must be an integer of at least {least}{upto}")
        elif name == "mode":
            if value not in MODES:
                yield Fault(place, f"must be one of {', '.join(MODES)}")
        elif name == "fallback":
            if value != EXTRACTIVE:
                yield Fault(place, f"must be null or {EXTRACTIVE}")
        elif name == "min_savings_ratio":
            if not isinstance(value, (int, float)) or value is True or not 0 <= value <= 1:
                yield Fault(place, "must be a number from 0 to 1")
        elif not isinstance(value, str) or not value.strip():
            yield Fault(place, "must be a non-empty string")
        elif len(value) > _LONGEST[name]:
            yield Fault(place, f"must have at most {_LONGEST[name]} characters")
