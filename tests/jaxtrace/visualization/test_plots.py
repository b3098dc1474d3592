"""Figures hold what the tracks hold."""

from __future__ import annotations

import numpy as np
import pytest
from tracks import orbit

from jaxtrace import export
from jaxtrace.visualization import ViewerError, plot_field, plot_trajectory


def collection(figure):
    return next(c for c in figure.axes[0].collections if hasattr(c, "get_segments"))


@pytest.mark.parametrize("dim", [2, 3])
def test_lines_are_the_ways_of_the_particles(tmp_path, dim):
    tracks = orbit(dim=dim, generations=True)
    figure = plot_trajectory(tracks, axes=("east", "north", "up"))
    shown = export.known(tracks)
    pieces = (shown[1:] & shown[:-1]).sum() - 1  # slot 3 began anew, once
    drawn = collection(figure)
    assert len(drawn.get_array()) == pieces
    speeds = tracks.speed()
    assert drawn.get_array()[0] == pytest.approx((speeds[0, 0] + speeds[1, 0]) / 2)
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("east", "north")
    figure.savefig(tmp_path / "tracks.png")
    if dim == 2:
        segments = np.array(drawn.get_segments())
        np.testing.assert_array_equal(segments[0], tracks.positions[:2, 0])
        assert axes.get_aspect() == 1.0
        ends = axes.collections[1].get_offsets()
        np.testing.assert_array_equal(ends, tracks.positions[-1])


def test_few_of_many_and_without_colours():
    figure = plot_trajectory(orbit(n=50), colour_by=None, max_particles=10)
    assert len(figure.axes) == 1
    assert len(figure.axes[0].collections[1].get_offsets()) == 10


def test_a_grid_of_numbers_keeps_its_axes():
    x, y = np.linspace(0, 2, 7), np.linspace(0, 1, 4)
    values = x[:, None] + 10 * y
    values[2, 1] = np.nan
    for given in (values, values.ravel()):
        mesh = plot_field(given, x, y, label="FTLE").axes[0].collections[0]
        table = mesh.get_array().reshape(4, 7)
        assert table[3, 6] == 12.0
        assert table.mask.sum() == 1
        assert table.mask[1, 2]


def test_what_does_not_fit_is_refused():
    with pytest.raises(ViewerError, match=r"expected \[3, 4\]"):
        plot_field(np.zeros(11), np.arange(3), np.arange(4))
    with pytest.raises(ViewerError, match="expected None or one of"):
        plot_trajectory(orbit(), colour_by="heat")
    with pytest.raises(ViewerError, match="nothing to draw"):
        plot_trajectory(orbit()[:0])
