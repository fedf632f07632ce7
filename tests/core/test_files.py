"""Files in folders of others: nothing is written through a link, and nothing unpacks without limit."""

from __future__ import annotations

import gzip
import os
import resource
import zlib
from pathlib import Path

import pytest

from presage.core.files import gunzip, inflate, read_limited, write_whole


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_link_is_replaced_and_not_followed(link: object, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine")
    link(other, tmp_path / "page")  # type: ignore[operator]
    write_whole(tmp_path / "page", "theirs")
    assert (other.read_text(), (tmp_path / "page").read_text()) == ("mine", "theirs")
    assert not (tmp_path / "page").is_symlink()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["other", "page"]


def test_a_disk_that_is_full_is_told_with_the_file(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(OSError, match="page"):
            write_whole(tmp_path / "page", "more than ten")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())


def test_nothing_is_left_of_what_could_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "page").mkdir()
    with pytest.raises(OSError, match="page"):
        write_whole(tmp_path / "page", "text")
    assert [file.name for file in tmp_path.iterdir()] == ["page"]


@pytest.mark.parametrize(("pack", "unpack"), [(zlib.compress, inflate), (gzip.compress, gunzip)])
def test_what_is_packed_is_unpacked_up_to_a_limit(pack: object, unpack: object) -> None:
    packed = pack(b"x" * 1000)  # type: ignore[operator]
    assert unpack(packed, 1000) == b"x" * 1000  # type: ignore[operator]
    for damaged, complaint in [(packed, "more than"), (packed[:-6], "cut short"), (b"\x1f\x8bno", "damaged")]:
        with pytest.raises(ValueError, match=complaint):
            unpack(damaged, 999 if damaged is packed else 1000)  # type: ignore[operator]


def test_several_gzip_files_in_one_share_the_limit() -> None:
    both = gzip.compress(b"a" * 600) + gzip.compress(b"b" * 600)
    assert len(gunzip(both, 1200)) == 1200
    with pytest.raises(ValueError, match="more than the 1000"):
        gunzip(both, 1000)


def test_a_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert read_limited(tmp_path / "file", 5) == b"12345"
    with pytest.raises(ValueError, match="more than 4 bytes"):
        read_limited(tmp_path / "file", 4)
