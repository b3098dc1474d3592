"""Alone, `joined` and `join` do nothing special."""

from __future__ import annotations

import numpy as np
import pytest

from worldloom import mesh


def test_a_process_alone_speaks_and_its_exceptions_go_their_way():
    heard = []

    def speak():
        with mesh.joined() as first:
            heard.append(first)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        speak()
    assert heard == [True]


def test_a_process_alone_gets_back_what_it_gave():
    tree = {"x": np.arange(6.0).reshape(2, 3), "y": [1, 2]}
    back = mesh.join(tree, axis=1)
    np.testing.assert_array_equal(back["x"], tree["x"])
    assert back["x"].dtype == np.float64
