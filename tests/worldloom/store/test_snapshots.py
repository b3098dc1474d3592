from __future__ import annotations

import shutil
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from worlds import World, all_worlds

from worldloom import store


@pytest.fixture
def snapshots(tmp_path: Path) -> store.Snapshots:
    return store.Snapshots(tmp_path / "run" / "snapshots", keep=2)


def tree(step: int) -> dict[str, np.ndarray]:
    return {"x": np.full(5, step)}


def test_the_last_few_are_kept(snapshots: store.Snapshots):
    assert snapshots.steps() == []
    assert snapshots.latest() is None
    for step in (1, 5, 30, 200):
        path = snapshots.save(step, tree(step), meta={"loss": step / 2})
        assert path == snapshots.folder / f"step-{step:012}"
        assert path.is_dir()
    assert snapshots.steps() == [30, 200]
    assert snapshots.latest() == 200
    back, meta = snapshots.load(tree(0))
    assert back["x"].tolist() == [200] * 5
    assert meta == {"loss": 100.0}
    back, meta = snapshots.load(tree(0), step=30)
    assert back["x"].tolist() == [30] * 5
    assert snapshots.read_meta() == {"loss": 100.0}
    assert snapshots.read_meta(step=30) == {"loss": 15.0}
    assert sorted(entry.name for entry in snapshots.folder.iterdir()) == [
        "step-000000000030",
        "step-000000000200",
    ]


def test_going_back_is_asked_for(snapshots: store.Snapshots):
    """Else the snapshots of a run that went back would hide behind those it left."""
    snapshots.save(10, tree(10))
    snapshots.save(20, tree(20))
    with pytest.raises(store.ArgumentError, match=r"step is 15.*\[20\].*delete"):
        snapshots.save(15, tree(15))
    with pytest.raises(store.MissingError, match=r"step 3; there are \[10, 20\]"):
        snapshots.delete(3)
    snapshots.delete(20)
    snapshots.save(15, tree(15))
    assert snapshots.steps() == [10, 15]
    assert len(list(snapshots.folder.iterdir())) == 2


def test_a_step_saved_again_takes_the_place_of_the_first(snapshots: store.Snapshots):
    snapshots.save(1, tree(1))
    for value in (7, 8, 9):
        snapshots.save(2, tree(value))
    assert snapshots.steps() == [1, 2]
    assert snapshots.load(tree(0))[0]["x"].tolist() == [9] * 5
    assert len(list(snapshots.folder.iterdir())) == 2


@pytest.mark.parametrize("world", all_worlds(), ids=lambda world: world.name)
def test_the_state_of_a_world_comes_back(world: World, snapshots: store.Snapshots):
    snapshots.save(3, world.state)
    back, _ = snapshots.load(jax.eval_shape(lambda: world.state))
    assert eqx.tree_equal(back, world.state, typematch=True)


def test_shards_of_many_devices_come_back_on_one_and_the_other_way_round(
    snapshots: store.Snapshots,
):
    mesh = jax.make_mesh((2,), ("worlds",), axis_types=(AxisType.Auto,))
    split = NamedSharding(mesh, PartitionSpec("worlds"))
    x = jnp.arange(12.0).reshape(4, 3)
    snapshots.save(1, jax.device_put(x, split))
    assert np.array_equal(snapshots.load(x)[0], x)
    snapshots.save(2, x)
    back, _ = snapshots.load(jax.device_put(x, split))
    assert back.sharding == split
    assert np.array_equal(back, x)


def test_leftovers_of_killed_writers_are_ignored_and_removed(snapshots: store.Snapshots):
    path = snapshots.save(1, tree(1))
    for name in (".writing", ".trash-step-000000000007"):
        shutil.copytree(path, snapshots.folder / name)
    (snapshots.folder / "notes.txt").write_text("mine")
    assert snapshots.steps() == [1]
    snapshots.save(2, tree(2))
    names = sorted(entry.name for entry in snapshots.folder.iterdir())
    assert names == ["notes.txt", "step-000000000001", "step-000000000002"]


def test_a_damaged_newest_snapshot_is_never_skipped_silently(snapshots: store.Snapshots):
    snapshots.save(1, tree(1))
    path = snapshots.save(2, tree(2))
    (file,) = path.iterdir()
    data = bytearray(file.read_bytes())
    data[70] ^= 1
    file.write_bytes(data)
    with pytest.raises(store.DamagedError, match=r"Snapshot 2 .*checksum.*Older snapshots: \[1\]"):
        snapshots.load(tree(0))
    assert snapshots.load(tree(0), step=1)[0]["x"].tolist() == [1] * 5
    file.write_bytes(b"something else")
    with pytest.raises(store.DamagedError, match=r"Older snapshots: \[1\]"):
        snapshots.read_meta()
    file.unlink()
    with pytest.raises(store.DamagedError, match=r"incomplete.*Older snapshots: \[1\]"):
        snapshots.load(tree(0))
    shutil.rmtree(snapshots.folder / "step-000000000001")
    with pytest.raises(store.DamagedError, match="There is no older"):
        snapshots.load(tree(0))


def test_files_of_another_snapshot_are_noticed(snapshots: store.Snapshots):
    first, second = snapshots.save(1, tree(1)), snapshots.save(2, tree(2))
    (name,) = (file.name for file in first.iterdir())
    shutil.copy(first / name, second / name)
    with pytest.raises(store.DamagedError, match="another snapshot"):
        snapshots.load(tree(0))
    (second / name).rename(second / "process-00000-of-00002.loom")
    with pytest.raises(store.DamagedError, match="incomplete"):
        snapshots.load(tree(0))


def test_a_template_that_does_not_fit(snapshots: store.Snapshots):
    snapshots.save(1, tree(1))
    with pytest.raises(
        store.MismatchError, match=r"step-000000000001(.|\n)*int64\[5\].*int64\[6\]"
    ):
        snapshots.load({"x": np.zeros(6, int)})


def test_what_is_not_there(snapshots: store.Snapshots):
    with pytest.raises(store.MissingError, match="no snapshot"):
        snapshots.load(tree(0))
    snapshots.save(4, tree(4))
    with pytest.raises(store.MissingError, match=r"step 3; there are \[4\]"):
        snapshots.load(tree(0), step=3)


def test_arguments_out_of_range(tmp_path: Path):
    with pytest.raises(store.ArgumentError, match="keep is 0"):
        store.Snapshots(tmp_path, keep=0)
    with pytest.raises(store.ArgumentError, match="level is 99"):
        store.Snapshots(tmp_path, level=99)
    with pytest.raises(store.ArgumentError, match="step is -1"):
        store.Snapshots(tmp_path).save(-1, {})


def test_a_tree_that_cannot_be_stored_leaves_nothing_behind(snapshots: store.Snapshots):
    snapshots.save(1, tree(1))
    with pytest.raises(store.UnstorableError):
        snapshots.save(2, {"x": np.array([None])})
    assert [entry.name for entry in snapshots.folder.iterdir()] == ["step-000000000001"]
