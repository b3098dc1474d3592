from __future__ import annotations

import pytest
from pages import MB, fresh_pages

import jaxtrace as jt
from jaxtrace.utils import track_memory, track_operation_memory


def test_operations_are_rows_of_the_table(capsys):
    with track_memory() as meter:
        with track_operation_memory("fill"):
            block = fresh_pages(64 * MB)
        with track_operation_memory("nothing"):
            pass
    assert [phase.name for phase in meter.phases] == ["fill", "nothing"]
    assert meter.phases[0].host_growth > 60 * MB
    assert len(block) == 64 * MB
    assert "fill" in capsys.readouterr().out


def test_an_operation_alone_prints_itself(capsys):
    with track_operation_memory("alone"):
        pass
    assert "alone" in capsys.readouterr().out


def test_settings_are_checked_and_kept():
    settings = jt.configure(dtype="float32", device="auto", memory_limit_gb=3.0)
    assert settings.memory_limit == 3_000_000_000
    assert jt.configure().memory_limit == 3_000_000_000
    assert jt.configure(memory_limit_gb=0).memory_limit is None
    with pytest.raises(jt.TraceError, match="float16"):
        jt.configure(dtype="float16")
    with pytest.raises(jt.TraceError, match="only \\['cpu'\\]"):
        jt.configure(device="gpu")
    assert jt.configure(device="cpu").device == "cpu"
