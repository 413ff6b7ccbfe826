"""The pages that the `type` of a problem document links to. They need neither login nor
database."""

from __future__ import annotations

import json

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from state_admin.services.errors import problem_types
from state_admin.services.problem_examples import example_of


@require_safe
def problem_list(request: HttpRequest) -> HttpResponse:
    kinds = sorted(problem_types(), key=lambda kind: (kind.status, kind.slug))
    # Dictionaries, because a template would call the classes.
    problems = [{"slug": kind.slug, "status": kind.status, "title": kind.title} for kind in kinds]
    return render(request, "problems/list.html", {"kinds": problems})


@require_safe
def problem_detail(request: HttpRequest, slug: str) -> HttpResponse:
    kind = next((kind for kind in problem_types() if kind.slug == slug), None)
    if kind is None:
        raise Http404
    context = {
        "problem": {
            "slug": kind.slug,
            "status": kind.status,
            "title": kind.title,
            "meaning": kind.meaning,
            "causes": kind.causes,
            "remedy": kind.remedy,
            "members": kind.all_members(),
        },
        "example": json.dumps(example_of(kind), indent=2, ensure_ascii=False),
    }
    return render(request, "problems/detail.html", context)


urlpatterns = [
    path("problems/", problem_list, name="problem-list"),
    path("problems/<slug:slug>", problem_detail, name="problem-detail"),
]
