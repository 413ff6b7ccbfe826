"""`{% csrf_token %}` of every template (project/settings.py), instead of Django's."""

from __future__ import annotations

from django import template
from django.template import RequestContext
from django.template.defaulttags import CsrfTokenNode
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

# The hidden field with which a form says which workspace its page shows.
WORKSPACE_FIELD = "page_workspace"


@register.simple_tag(takes_context=True)
def csrf_token(context: RequestContext) -> SafeString:
    """Django's hidden field and, for members, the workspace that the page shows (actors.page)."""
    actor = getattr(context.get("request"), "actor", None)
    field = '<input type="hidden" name="{}" value="{}">'
    workspace = format_html(field, WORKSPACE_FIELD, actor.workspace) if actor else ""
    return format_html("{}{}", CsrfTokenNode().render(context), workspace)
