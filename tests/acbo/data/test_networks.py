from __future__ import annotations

import zipfile
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from acbo._errors import AcboError, DataError
from acbo.data import published_network, published_networks, sachs_data
from acbo.data._sachs import EXPERIMENTS, NAMES, PLACE

# Variables and edges, as the bnlearn repository states them.
SIZES = {
    "asia": (8, 8),
    "cancer": (5, 4),
    "earthquake": (5, 4),
    "sachs": (11, 17),
    "survey": (6, 6),
    "alarm": (37, 46),
    "barley": (48, 84),
    "child": (20, 25),
    "insurance": (27, 52),
    "mildew": (35, 46),
    "water": (32, 66),
    "hailfinder": (56, 66),
    "hepar2": (70, 123),
    "win95pts": (76, 112),
    "andes": (223, 338),
    "ecoli70": (46, 70),
}


@pytest.mark.parametrize("name", list(SIZES))
def test_published_sizes(name: str):
    network = published_network(name)
    assert (len(network.names), int(network.graph.sum())) == SIZES[name]
    assert nx.is_directed_acyclic_graph(nx.from_numpy_array(network.graph, create_using=nx.DiGraph))
    assert name in published_networks()


def test_the_edges_of_asia():
    network = published_network("asia")
    found = {(network.names[i], network.names[j]) for i, j in np.argwhere(network.graph)}
    assert found == {
        ("asia", "tub"),
        ("smoke", "lung"),
        ("smoke", "bronc"),
        ("tub", "either"),
        ("lung", "either"),
        ("either", "xray"),
        ("either", "dysp"),
        ("bronc", "dysp"),
    }
    assert repr(network) == "Network('asia', 8 variables, 8 edges)"


def test_the_consensus_network_of_sachs():
    network = published_network("sachs")
    assert set(network.names) == set(NAMES.values())
    assert network.parents("Raf") == ("PKA", "PKC")
    assert network.parents("PKC") == ()
    with pytest.raises(DataError, match="no variable 'Ras'"):
        network.parents("Ras")


def test_unknown_names_are_refused_with_those_that_are_known():
    with pytest.raises(KeyError, match="called 'sax'; there are alarm, andes") as caught:
        published_network("sax")
    assert isinstance(caught.value, AcboError)


def write_like_cdt(folder: Path, *, rows: int = 7466) -> Path:
    """A file in the form of the real one, with noise for values."""
    values = np.random.default_rng(0).lognormal(size=(rows, 11))
    lines = [",".join(NAMES), *(",".join(f"{x:.3f}" for x in row) for row in values)]
    (folder / "cyto_full_data.csv").write_text("\n".join(lines) + "\n")
    return folder / "cyto_full_data.csv"


def test_data_of_sachs(tmp_path: Path):
    assert sum(size for _, size, _ in EXPERIMENTS) == 7466
    file = write_like_cdt(tmp_path)
    data = sachs_data(file)
    assert data.values.shape == (5846, 11)
    assert set(data.names) == set(published_network("sachs").names)
    counts = dict(zip(data.names, data.intervened.sum(0).tolist(), strict=True))
    expected = {"Akt": 911, "PKC": 723, "PIP2": 810, "Mek": 799, "PIP3": 848}
    assert {name: count for name, count in counts.items() if count} == expected
    assert not data.intervened[:1755].any()
    assert data.intervened[1755:].any(1).all()
    more = sachs_data(file, activations=True)
    assert more.values.shape == (7466, 11)
    assert more.intervened[6759:, more.index("PKA")].all()
    np.testing.assert_array_equal(more.values[:5846], data.values)


def test_data_of_sachs_from_a_wheel(tmp_path: Path):
    file = write_like_cdt(tmp_path)
    wheel = tmp_path / "cdt-0.6.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(file, PLACE)
    np.testing.assert_array_equal(sachs_data(wheel).values, sachs_data(file).values)
    with zipfile.ZipFile(tmp_path / "other.whl", "w") as archive:
        archive.writestr("a.txt", "")
    with pytest.raises(DataError, match=r"'other\.whl', which has no cdt/data"):
        sachs_data(tmp_path / "other.whl")


def test_data_of_sachs_that_is_something_else(tmp_path: Path):
    with pytest.raises(DataError, match="source has 100 rows of praf, pmek"):
        sachs_data(write_like_cdt(tmp_path, rows=100))
    with pytest.raises(DataError, match="no such file"):
        sachs_data(tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match="pip download cdt"):
        sachs_data()
