from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import pytest

from worldloom import batch
from worldloom._memory import left_in_container
from worldloom.batch._memory import cache_bytes


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        (7, 7),
        (2e9, 2 * 10**9),
        ("7", 7),
        ("2 GiB", 2 * 2**30),
        ("1.5kb", 1500),
        (" 0.5 MiB ", 2**19),
        ("3 TB", 3 * 10**12),
    ],
)
def test_amounts_as_people_write_them(amount, expected):
    assert batch.parse_bytes(amount) == expected


@pytest.mark.parametrize(
    "amount", ["", "GiB", "2 G", "-1 MiB", "2 GiB free", "1,5 GB", "nan", -1, True, float("inf")]
)
def test_what_is_no_amount_is_refused(amount):
    with pytest.raises(batch.BatchError, match="is not an amount of memory"):
        batch.parse_bytes(amount)


@hypothesis.given(st.integers(0, 2**50))
def test_a_formatted_amount_reads_back_within_its_digits(count):
    assert batch.parse_bytes(batch.format_bytes(count)) == pytest.approx(count, rel=0.005)


def test_available_memory_is_within_what_the_machine_has():
    import psutil

    assert 0 < batch.available_memory() <= psutil.virtual_memory().total


def test_the_tightest_control_group_bounds_what_is_left(tmp_path):
    root = tmp_path / "cgroup"
    inner = root / "outer" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "membership").write_text("1:cpu:/elsewhere\n0::/outer/inner\n")
    for folder, limit, used, files in ((root / "outer", 1000, 700, 100), (inner, "max", 600, 90)):
        (folder / "memory.max").write_text(f"{limit}\n")
        (folder / "memory.current").write_text(f"{used}\n")
        (folder / "memory.stat").write_text(f"anon 1\ninactive_file {files}\n")
    assert left_in_container(root, tmp_path / "membership") == [400]


def test_the_older_control_groups_are_read_too(tmp_path):
    folder = tmp_path / "memory" / "job"
    folder.mkdir(parents=True)
    (tmp_path / "membership").write_text("4:memory:/job\n")
    (folder / "memory.limit_in_bytes").write_text("500\n")
    (folder / "memory.usage_in_bytes").write_text("900\n")
    (folder / "memory.stat").write_text("inactive_file 0\n")
    assert left_in_container(tmp_path, tmp_path / "membership") == [0]


def test_no_control_groups_are_no_limit(tmp_path):
    assert left_in_container(tmp_path, tmp_path / "none") == []


def test_the_last_cache_counts(tmp_path):
    for index, (level, size) in enumerate([(1, "32K"), (1, "32K"), (3, "9216K"), (2, "512K")]):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        (folder / "level").write_text(f"{level}\n")
        (folder / "size").write_text(f"{size}\n")
    assert cache_bytes(tmp_path) == 9216 * 1024
    assert cache_bytes(tmp_path / "none") == 32 * 2**20
