"""The data folder: nobody else reads it, and it is nobody else's."""

from __future__ import annotations

from pathlib import Path

import pytest

from project.env import BadSetting, data_dir


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
def test_data_dir__open_to_others__is_closed(before: int, configured: Path) -> None:
    configured.mkdir(parents=True)
    configured.chmod(before)
    data_dir()
    assert mode(configured) == 0o700


def test_data_dir__passable_for_the_user_of_postgresql__stays_so(configured: Path) -> None:
    configured.mkdir(parents=True)
    configured.chmod(0o711)
    data_dir()
    assert mode(configured) == 0o711


def test_data_dir__shared_by_everybody__is_refused(configured: Path) -> None:
    configured.mkdir(parents=True)
    configured.chmod(0o1777)
    with pytest.raises(BadSetting, match="is shared by all users; set COMMONHOLD_DATA_DIR"):
        data_dir()
    assert mode(configured) == 0o1777


def test_data_dir__of_somebody_else__is_refused(
    configured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured.mkdir(parents=True)
    configured.chmod(0o777)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "chmod", refuse)
    with pytest.raises(BadSetting, match="accessible to other users"):
        data_dir()
