"""Plugins: keys that are installed and uninstalled together."""

from __future__ import annotations

from dataclasses import dataclass, field

from commonhold.batches import AnyStateKey, Registration, StateKeyOptions
from commonhold.errors import KeyAlreadyRegistered
from commonhold.keys import ProfileKey


class Plugin:
    """Keys that are installed and uninstalled together. Derive a class and register them."""

    name = ""

    def register(self, registrar: PluginRegistrar) -> None:
        """Declare keys. If this raises an exception, nothing of the plugin is registered."""


@dataclass
class PluginRegistrar:
    keys: dict[str, Registration] = field(default_factory=dict)
    profile_keys: dict[str, type[ProfileKey]] = field(default_factory=dict)

    def register_key(self, key: AnyStateKey, options: StateKeyOptions | None = None) -> None:
        if key.KEY in self.keys:
            raise KeyAlreadyRegistered(key.KEY)
        self.keys[key.KEY] = Registration.of(key, options)

    def register_profile_key(self, key: type[ProfileKey]) -> None:
        if key.KEY in self.profile_keys:
            raise KeyAlreadyRegistered(key.KEY)
        self.profile_keys[key.KEY] = key
