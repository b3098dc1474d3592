from __future__ import annotations

import re

import numpy as np

from acbo import demo
from worldloom import report


def test_the_chapter_finds_a_graph_and_chooses_interventions():
    page = report.Report("A page")
    line = demo.add_to(page, rounds=1)
    score, reached = (
        float(re.findall(pattern, line.found)[0])
        for pattern in (r"AUROC ([\d.]+)", r"reach ([\d.]+)")
    )
    assert score > 0.8
    assert reached > 0.5
    html = page.html()
    for words in ("Direct causes", "Step by step"):
        assert words in html


def test_the_python_loop_draws_standardised_tables_of_causes():
    table = np.array(demo.python_study(5, 400)())
    assert table.shape == (400, 5)
    np.testing.assert_allclose(table.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(table.std(axis=0), 1.0, atol=1e-9)
    assert np.abs(np.corrcoef(table.T) - np.eye(5)).max() > 0.2
