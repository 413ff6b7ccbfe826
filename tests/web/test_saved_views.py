"""Saved views beside the lists: they store filters, never a URL."""

from __future__ import annotations

import pytest
from django.test import Client

from state_admin.models import SavedView

LISTS = {"state": "/state", "threads": "/threads", "runs": "/runs"}


def save(client: Client, page: str, query: str, name: str = "mine", **more: str) -> str:
    data = {"page": page, "query": query, "name": name, **more}
    return str(client.post("/views", data)["Location"])


@pytest.mark.parametrize(
    ("page", "query", "kept"),
    [
        ("state", "prefix=a%26b&after=x&scope=", "/state?prefix=a%26b"),
        ("threads", "status=stuck&agent=a", "/threads?agent=a&status=stuck"),
        ("runs", "status=done&before=9&next=//evil.example", "/runs?status=done"),
        ("state", "//evil.example/?prefix=a", "/state?view=all"),
        ("runs", "", "/runs?view=all"),
    ],
)
def test_save__parameters__only_filters_of_the_list_are_kept(
    page: str, query: str, kept: str, admin: Client
) -> None:
    assert save(admin, page, query) == kept
    html = admin.get(f"{LISTS[page]}?view=all").content.decode()
    assert f'href="{kept.replace("&", "&amp;")}"' in html
    assert "mine" in html


@pytest.mark.parametrize("page", LISTS)
def test_default__list_without_filters__opens_with_it(page: str, admin: Client) -> None:
    save(admin, page, "agent=a&prefix=a")
    view = SavedView.objects.get()
    admin.post(f"/views/{view.pk}", {"page": page, "do": "default"})
    response = admin.get(LISTS[page])
    assert response["Location"] == f"{LISTS[page]}?{view.query}"
    assert admin.get(f"{LISTS[page]}?view=all").status_code == 200
    part = {"HX-Request": "true", "HX-Request-Type": "partial"}
    assert admin.get(LISTS[page], headers=part).status_code == 200
    admin.post(f"/views/{view.pk}", {"page": page, "do": "undefault"})
    assert admin.get(LISTS[page]).status_code == 200


def test_shared__of_another_user__is_listed_but_cannot_be_deleted(
    admin: Client, viewer: Client, stranger: Client
) -> None:
    save(admin, "runs", "status=done", name="done ones", shared="on")
    view = SavedView.objects.get()
    page = viewer.get("/runs").content.decode()
    assert "done ones" in page
    assert "Delete the view" not in page
    viewer.post(f"/views/{view.pk}", {"page": "runs", "do": "delete"})
    assert b"belongs to another user" in viewer.get("/runs").content
    assert b"done ones" not in stranger.get("/runs").content
    stranger.post(f"/views/{view.pk}", {"page": "runs", "do": "delete"})
    assert SavedView.objects.exists()
    admin.post(f"/views/{view.pk}", {"page": "runs", "do": "delete"})
    assert not SavedView.objects.exists()


def test_save__viewer__can_save_private_ones_only(viewer: Client) -> None:
    save(viewer, "runs", "status=done", shared="on")
    assert not SavedView.objects.exists()
    assert b"The role editor is required" in viewer.get("/runs").content
    save(viewer, "runs", "status=done")
    assert not SavedView.objects.get().shared


def test_view__malformed__is_refused(admin: Client) -> None:
    assert admin.post("/views", {"page": "elsewhere"}).status_code == 400
    assert admin.post("/views/1", {"page": "runs", "do": "dance"}).status_code == 400
    assert admin.post("/views/1", {"page": "runs", "do": "delete"})["Location"] == "/runs?view=all"
