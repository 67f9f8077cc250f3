"""Durable writes: the old bytes or the new ones, never a part, and nothing beside them."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from certkit.ground import files
from certkit.ground.errors import CertkitError, InputError, UsageError


class InterruptedHereError(Exception):
    """Stands for whatever may go wrong while a file is written."""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record what is flushed and replaced, in order, while it really happens."""
    seen: list[str] = []
    fsync, replace = os.fsync, os.replace  # noqa: TID251 - watched, not used

    def watched_fsync(descriptor: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        seen.append(f"fsync {kind}")
        fsync(descriptor)

    def watched_replace(source: str, target: str) -> None:
        seen.append(f"replace {Path(target).name}")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", watched_replace)
    return seen


def write_half(target: Path) -> None:
    with files.writing(target) as stream:
        stream.write(b"half of")
        raise InterruptedHereError


def build_half(target: Path) -> None:
    with files.building(target) as folder:
        (folder / "sub").mkdir()
        (folder / "sub" / "a").write_bytes(b"1")
        raise InterruptedHereError


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_file_is_flushed_before_it_takes_its_name_and_the_folder_after(
    tmp_path: Path, calls: list[str]
) -> None:
    files.write(tmp_path / "a", b"new")
    assert calls == ["fsync file", "replace a", "fsync folder"]
    assert (tmp_path / "a").read_bytes() == b"new"
    assert names(tmp_path) == {"a"}


def test_all_bytes_are_in_the_file_when_it_is_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            sizes.append(status.st_size)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    with files.writing(tmp_path / "a") as stream:
        stream.write(b"x" * 10)
        stream.write(b"y" * 3)
    assert sizes == [13]


def test_the_mode_is_set_and_not_wider_while_writing(tmp_path: Path) -> None:
    with files.writing(tmp_path / "key", mode=0o600) as stream:
        assert stat.S_IMODE(os.fstat(stream.fileno()).st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    files.write(tmp_path / "plain", b"")
    assert stat.S_IMODE((tmp_path / "plain").stat().st_mode) == 0o644


def test_missing_folders_are_made(tmp_path: Path) -> None:
    files.write(tmp_path / "a" / "b" / "c", b"1")
    assert (tmp_path / "a" / "b" / "c").read_bytes() == b"1"


@pytest.mark.parametrize("before", [None, b"old"])
def test_an_exception_in_the_block_leaves_everything_as_it_was(tmp_path: Path, before: bytes | None) -> None:
    target = tmp_path / "a"
    if before is not None:
        target.write_bytes(before)
    with pytest.raises(InterruptedHereError):
        write_half(target)
    assert names(tmp_path) == ({"a"} if before is not None else set())
    assert before is None or target.read_bytes() == before


@pytest.mark.parametrize("call", ["fsync", "replace", "fchmod"])
def test_whatever_the_system_refuses_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    target = tmp_path / "a"
    target.write_bytes(b"old")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(UsageError) as caught:
        files.write(target, b"new")
    assert (caught.value.code, caught.value.where) == ("file.unwritable", str(target))
    assert "no space left" in str(caught.value)
    assert names(tmp_path) == {"a"}
    assert target.read_bytes() == b"old"


def test_a_folder_that_cannot_be_flushed_is_said_although_the_file_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync

    def refuse_folders(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(5, "Input/output error")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    with pytest.raises(UsageError, match="input/output error"):
        files.write(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert names(tmp_path) == {"a"}


def test_an_existing_file_is_kept_where_overwriting_is_not_asked_for(tmp_path: Path) -> None:
    files.write(tmp_path / "a", b"old", overwrite=False)
    with pytest.raises(UsageError) as caught:
        files.write(tmp_path / "a", b"new", overwrite=False)
    assert caught.value.code == "file.exists"
    assert (tmp_path / "a").read_bytes() == b"old"
    files.write(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"


def test_a_link_at_the_target_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"untouched")
    (tmp_path / "a").symlink_to(tmp_path / "elsewhere")
    files.write(tmp_path / "a", b"new")
    assert (tmp_path / "elsewhere").read_bytes() == b"untouched"
    assert not (tmp_path / "a").is_symlink()


def test_a_parent_that_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(UsageError) as caught:
        files.write(tmp_path / "a" / "b", b"new")
    assert caught.value.code == "file.unwritable"


def test_a_name_as_long_as_the_system_allows_can_be_written(tmp_path: Path) -> None:
    files.write(tmp_path / ("n" * 255), b"1")
    assert names(tmp_path) == {"n" * 255}


def test_a_folder_appears_whole(tmp_path: Path, calls: list[str]) -> None:
    with files.building(tmp_path / "out") as folder:
        files.write(folder / "sub" / "a", b"1")
        assert not (tmp_path / "out").exists()
    assert (tmp_path / "out" / "sub" / "a").read_bytes() == b"1"
    assert names(tmp_path) == {"out"}
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o755
    # A new subfolder's parent, the file and its folder; the built folder and its subfolder; last the
    # folder that they appear in.
    written = ["fsync folder", "fsync file", "replace a", "fsync folder"]
    assert calls == [*written, "fsync folder", "fsync folder", "replace out", "fsync folder"]


def test_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with files.building(tmp_path / "out") as folder:
        (folder / "a").write_bytes(b"1")
    assert names(tmp_path / "out") == {"a"}


def test_an_exception_while_building_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InterruptedHereError):
        build_half(tmp_path / "out")
    assert names(tmp_path) == set()


@pytest.mark.parametrize("kind", ["file", "full folder", "link", "dangling link"])
def test_what_is_in_the_way_of_a_folder_is_left_alone(tmp_path: Path, kind: str) -> None:
    out, beside = tmp_path / "out", tmp_path / "beside"
    beside.mkdir()
    if kind == "file":
        out.write_bytes(b"old")
    elif kind == "full folder":
        out.mkdir()
        (out / "a").write_bytes(b"old")
    else:
        out.symlink_to(beside if kind == "link" else tmp_path / "nowhere")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError) as caught, files.building(out):
        raise AssertionError("the block must not run")
    assert caught.value.code == "file.exists"
    assert sorted(tmp_path.rglob("*")) == before


def test_reading_stops_at_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert files.read(tmp_path / "a", limit=5) == b"12345"
    with pytest.raises(InputError) as caught:
        files.read(tmp_path / "a", limit=4)
    assert caught.value.code == "json.too-large"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none", "not found"),
        ("full", "not a directory"),
        ("folder", "is a folder, not a file"),
        ("pipe", "is a pipe, not a file"),
        ("socket", "is a socket, not a file"),
        ("link", "is a pipe, not a file"),
        ("/dev/null", "is a device, not a file"),
        ("/dev/fd", "is a folder, not a file"),
    ],
)
def test_what_is_no_file_is_not_read_and_nothing_waits(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    path = tmp_path / "file" / "below" if name == "full" else tmp_path / name
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(tmp_path / "socket"))
        for read in (lambda: files.read(path, limit=1), lambda: files.sha256(path)):
            with pytest.raises(InputError) as caught:
                read()
            assert caught.value.message == said
            assert caught.value.code == {
                "not found": "file.missing",
                "not a directory": "file.unreadable",
            }.get(said, "file.not-regular")


def test_a_pipe_that_the_shell_has_opened_is_read() -> None:
    source, sink = os.pipe()
    os.write(sink, b"from a command")
    os.close(sink)
    try:
        assert files.read(Path(f"/dev/fd/{source}"), limit=100) == b"from a command"
    finally:
        os.close(source)


@pytest.mark.parametrize("name", ["folder", "pipe", "link", "/dev/null", "/dev/stdout", "/dev/fd/1"])
def test_what_is_no_file_is_not_replaced(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    before = names(tmp_path)
    with pytest.raises(UsageError) as caught:
        files.write(tmp_path / name, b"new")
    assert caught.value.code == "file.not-regular"
    assert names(tmp_path) == before
    assert not (tmp_path / "link").is_file()


def test_a_file_is_hashed_in_pieces_like_whole(tmp_path: Path) -> None:
    # FIPS 180-4, the example of a million times the letter a.
    (tmp_path / "a").write_bytes(b"a" * 1_000_000)
    assert files.sha256(tmp_path / "a") == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
    with pytest.raises(CertkitError) as caught:
        files.sha256(tmp_path)
    assert caught.value.code == "file.not-regular"


def test_many_files_are_flushed_before_their_names_and_every_folder_on_the_way(
    tmp_path: Path, calls: list[str]
) -> None:
    top = tmp_path / "top"
    (top / "a").mkdir(parents=True)  # by somebody who may not have flushed it
    calls.clear()
    files.write_all(top, [("a/b/one", b"1"), ("a/b/two", b"2")])
    assert (top / "a" / "b" / "one").read_bytes() == b"1"
    assert (top / "a" / "b" / "two").read_bytes() == b"2"
    made = ["fsync folder"]
    written = ["fsync file", "replace one", "fsync file", "replace two"]
    folders = 4  # b, a, top, and the one that top is in
    assert calls == made + written + ["fsync folder"] * folders


def test_many_files_stop_at_the_first_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UsageError) as caught:
        files.write_all(tmp_path, [("one", b"1"), ("file/two", b"2"), ("three", b"3")])
    assert caught.value.code == "file.unwritable"
    assert names(tmp_path) == {"file", "one"}


def test_a_folder_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    with files.locked(tmp_path), pytest.raises(UsageError) as caught, files.locked(tmp_path):
        pass
    assert caught.value.code == "registry.busy"
    with files.locked(tmp_path):
        pass
    with pytest.raises(UsageError) as caught, files.locked(tmp_path / "none"):
        pass
    assert caught.value.code == "file.unwritable"


def test_a_file_is_moved_durably(tmp_path: Path, calls: list[str]) -> None:
    (tmp_path / "a").write_bytes(b"new")
    (tmp_path / "b").write_bytes(b"old")
    files.move(tmp_path / "a", tmp_path / "b")
    assert (names(tmp_path), (tmp_path / "b").read_bytes()) == ({"b"}, b"new")
    assert calls == ["replace b", "fsync folder"]
    with pytest.raises(UsageError) as caught:
        files.move(tmp_path / "a", tmp_path / "b")
    assert caught.value.code == "file.unwritable"


@pytest.mark.parametrize(
    ("data", "left"),
    [
        (b"", b""),
        (b"half", b""),
        (b"whole\n", b"whole\n"),
        (b"whole\nhalf", b"whole\n"),
        (b"whole\n" + b"h" * 200_000, b"whole\n"),
    ],
)
def test_the_half_of_a_last_line_is_cut_off(tmp_path: Path, data: bytes, left: bytes) -> None:
    (tmp_path / "a").write_bytes(data)
    files.cut_last_line(tmp_path / "a")
    files.cut_last_line(tmp_path / "absent")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": left}
