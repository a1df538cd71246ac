"""Outputs appear whole or not at all."""

from __future__ import annotations

import os
import stat

import pytest

from flaot.errors import FileSystemError, UsageError
from flaot.files import check_output, read_file, write_file


def test_writes_and_replaces(tmp_path):
    target = tmp_path / "a.bin"
    write_file(str(target), b"one")
    os.chmod(target, 0o600)
    write_file(str(target), [b"t", b"w", b"o"])
    assert target.read_bytes() == b"two"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["a.bin"]


def test_follows_symbolic_links_dangling_ones_too(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_file(str(tmp_path / "link"), b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"x"


def test_refused_targets(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "model").write_bytes(b"m")
    for bad in (
        "",
        str(tmp_path),
        f"{tmp_path}/x/",
        f"{tmp_path}/no/x",
        str(tmp_path / "pipe"),
        "/dev/null",
        f"{tmp_path}/model/x",
        "a\0b",
    ):
        with pytest.raises(FileSystemError):
            check_output(bad)
    with pytest.raises(UsageError, match="also an input"):
        check_output(str(tmp_path / "model"), [str(tmp_path / "model")])


def test_a_folder_that_takes_no_files(tmp_path, monkeypatch):
    tmp_path.chmod(0o555)
    if os.access(tmp_path, os.W_OK):  # root may write anywhere
        monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(FileSystemError, match="its folder is not writable"):
        check_output(str(tmp_path / "x"))
    tmp_path.chmod(0o755)


def test_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")

    def refuse(*args, **kwargs):
        raise OSError(28, "No space left on device")

    for call in ("write", "fsync", "replace"):
        with monkeypatch.context() as m:
            m.setattr(os, call, refuse)
            with pytest.raises(FileSystemError, match="no space left"):
                write_file(str(target), b"new")
        assert target.read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["a.bin"]


def test_leftovers_of_killed_runs_are_removed(tmp_path):
    (tmp_path / ".a.bin.flaot-999999999").write_bytes(b"half")
    (tmp_path / f".a.bin.flaot-{os.getppid()}").write_bytes(b"someone else's")
    write_file(str(tmp_path / "a.bin"), b"x")
    assert sorted(os.listdir(tmp_path)) == [f".a.bin.flaot-{os.getppid()}", "a.bin"]


def test_works_without_unnamed_files(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", lambda *a, **k: (_ for _ in ()).throw(OSError(2, "no /proc")))
    write_file(str(tmp_path / "a.bin"), b"x")
    assert os.listdir(tmp_path) == ["a.bin"]


def test_reading_never_waits(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for bad in (tmp_path / "pipe", tmp_path, tmp_path / "absent", "/dev/zero"):
        with pytest.raises(FileSystemError):
            read_file(str(bad), "a plan")
