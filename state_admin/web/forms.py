"""The forms with more than two fields. Services validate the meaning of the values."""

from __future__ import annotations

from django import forms

from state_admin.contract.types import MAX_TTL
from state_admin.domain.scopes import BadName, check_name
from state_admin.domain.values import DEFAULT_MAX_VALUE_BYTES, MAX_VALUE_BYTES

_CODE = {
    "spellcheck": "false",
    "autocapitalize": "off",
    "autocomplete": "off",
    "wrap": "off",
    "data-editor": "",  # static/js/editor.js
}
_MOST = (1 << 53) - 1


def _limit(label: str, most: int, empty: str) -> forms.IntegerField:
    """`empty`: what an empty field means."""
    return forms.IntegerField(
        label=label, required=False, min_value=1, max_value=most, help_text=f"Empty: {empty}"
    )


class NamespaceLimitsForm(forms.Form):
    """The limits of a namespace: what its registration has beside name, schema and default."""

    description = forms.CharField(required=False, max_length=10_000)
    max_value_bytes = _limit(
        "Largest value, in bytes", MAX_VALUE_BYTES, f"{DEFAULT_MAX_VALUE_BYTES:,}"
    )
    ttl_seconds = _limit("Entries expire after, in seconds", MAX_TTL, "never")
    history_keep_last = _limit("Keep this many versions of each entry", 1_000_000, "all")
    history_keep_seconds = _limit("Keep versions younger than, in seconds", MAX_TTL, "all")


class NamespaceForm(NamespaceLimitsForm):
    """The registration of a namespace."""

    field_order = ("name", "description", "schema", "default")

    name = forms.CharField(
        max_length=128,
        help_text="Letters, digits, underscores, dots, colons and hyphens, for example team_context",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    schema = forms.CharField(
        label="Schema (JSON Schema 2020-12)",
        strip=False,
        widget=forms.Textarea(
            attrs={"rows": 18, "class": "editor", **_CODE, "data-original": "#stored-schema"}
        ),
    )
    default = forms.CharField(
        label="Default (JSON)",
        strip=False,
        help_text="Returned by reads where no value is stored. It must match the schema.",
        widget=forms.Textarea(attrs={"rows": 5, **_CODE, "data-original": "#stored-default"}),
    )
    # The schema version and `updated_at` that were edited, and what the user accepted: see
    # SaveEffects.token.
    base = forms.IntegerField(required=False, max_value=_MOST, widget=forms.HiddenInput)
    seen = forms.CharField(required=False, max_length=40, widget=forms.HiddenInput)
    agreed = forms.CharField(required=False, max_length=100, widget=forms.HiddenInput)

    def clean_name(self) -> str:
        """Also checked by the service, which knows no field."""
        name: str = self.cleaned_data["name"]
        if name:
            try:
                check_name(name)
            except BadName as bad:
                raise forms.ValidationError(str(bad)) from bad
        return name
