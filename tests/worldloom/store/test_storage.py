from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from worldloom import store


@pytest.fixture
def storage(tmp_path: Path) -> store.CompressedStorage:
    return store.CompressedStorage(tmp_path / "deep" / "cache")


def test_entries_come_back_plain(storage: store.CompressedStorage):
    rng = np.random.default_rng(0)
    data = {
        "episode_grids": [rng.integers(0, 10, (30, 30)) for _ in range(5)],
        "metadata": {"episode_id": "test_001", "total_steps": 100, "done": (True, None)},
        "device": jnp.arange(3),
    }
    storage.save(data, "episode_001")
    back = storage.load("episode_001")
    assert all(map(np.array_equal, back["episode_grids"], data["episode_grids"]))
    assert back["metadata"] == data["metadata"]
    assert isinstance(back["device"], np.ndarray)


def test_entries_are_compressed(storage: store.CompressedStorage):
    storage.save(np.zeros((100, 30, 30)), "zeros")
    assert (storage.folder / "zeros.loom").stat().st_size < 2000


def test_names_and_deletion(storage: store.CompressedStorage):
    assert storage.names() == []
    for name in ("b", "a", "v1.2_x-3"):
        storage.save(name, name)
    (storage.folder / "notes.txt").write_text("not an entry")
    (storage.folder / ".a.loom.0.unfinished").write_text("left by a killed writer")
    assert storage.names() == ["a", "b", "v1.2_x-3"]
    storage.save("new", "a")
    assert storage.load("a") == "new"
    storage.delete("a")
    assert storage.names() == ["b", "v1.2_x-3"]
    with pytest.raises(store.MissingError, match=r"no entry 'a'; there are \['b', 'v1.2_x-3'\]"):
        storage.load("a")
    with pytest.raises(store.MissingError):
        storage.delete("a")


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "../x", "a/b", "a/../../x", "/etc/passwd", "a\\b", "..\\x", "C:x"),
        *(".hidden", "-rf", "a b", "a\n", "a\0b", "ü", "a" * 201, "a/", "~", "$HOME", "a*"),
    ],
)
def test_a_name_cannot_leave_the_folder(name: str, storage: store.CompressedStorage):
    storage.save(1, "fine")
    before = sorted(storage.folder.parent.parent.rglob("*"))
    for use in (lambda: storage.save(2, name), lambda: storage.load(name)):
        with pytest.raises(store.InvalidNameError, match="name is"):
            use()
    with pytest.raises(store.InvalidNameError):
        storage.delete(name)
    assert sorted(storage.folder.parent.parent.rglob("*")) == before


def test_what_would_not_come_back_is_refused_when_it_is_saved(storage: store.CompressedStorage):
    with pytest.raises(store.UnstorableError, match=r"\['when'\] is a object"):
        storage.save({"when": object()}, "entry")
    assert storage.names() == []
