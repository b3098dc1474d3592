from __future__ import annotations

import numpy as np

import jaxtrace as jt
from jaxtrace import demo
from worldloom import report


def test_the_chapter_tracks_and_shows_particles():
    page = report.Report("A page")
    line = demo.add_to(page, particles=200, steps=60, rounds=1)
    assert line.comparison.baseline == "NumPy, whole arrays"
    assert line.comparison.ratio(line.ours).value > 0
    html = page.html()
    assert 'class="tracks"' in html
    assert "200 particles" in html


def test_numpy_does_the_same_arithmetic():
    axes, times, data = demo.whirlwind()
    assert np.isfinite(data).all()
    field = jt.StructuredField(data, axes, times)
    seeds = jt.random_seeds(50, [[-0.5, -0.5, 0.2], [0.5, 0.5, 1.0]])
    tracks = jt.create_tracker("rk4", field=field).track_particles(seeds, (0.0, 0.4), 20)
    ours = tracks.positions[-1]
    theirs = demo.numpy_steps(data, seeds, 0.02, 20)()
    np.testing.assert_allclose(theirs, ours, atol=2e-5)
    assert np.abs(ours - seeds).max() > 0.05
