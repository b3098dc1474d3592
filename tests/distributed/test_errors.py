"""A process that gives up takes the others with it, and says why."""

from __future__ import annotations

import pytest
from launching import launch


@pytest.mark.parametrize(
    ("way", "code", "words"),
    [
        ("ours", 1, "[1] worldloom: error: --worlds is too large for process 1"),
        pytest.param("bug", 1, "[1] ZeroDivisionError: a bug in proc", marks=pytest.mark.slow),
        pytest.param("exit", 7, "", marks=pytest.mark.slow),
    ],
)
def test_a_process_that_gives_up_ends_all(way, code, words, capfd):
    assert launch("quarrel.py", way) == code
    out, err = capfd.readouterr()
    assert "[0] joined [0.1, 1.1] True" in out
    assert "[1] joined [0.1, 1.1] False" in out
    assert words in err
    # The other may have begun to say that it has lost its peer.
    assert ("[1] Traceback" in err) == (way == "bug")
    assert f"process 1 of 2 ended with exit code {code}" in err
    assert "The other 1 is ended." in err
