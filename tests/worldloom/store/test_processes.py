"""Snapshots of two real processes, on loopback."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from worldloom import store

SCRIPT = """
import sys
from pathlib import Path
import jax
rank, port, folder = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.config.update("jax_num_cpu_devices", 2)
jax.distributed.initialize(f"127.0.0.1:{port}", 2, rank, initialization_timeout=60)
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from worldloom import store

mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Auto, AxisType.Auto))

def spread(array, *axes):
    return jax.make_array_from_callback(
        array.shape, NamedSharding(mesh, P(*axes)), lambda index: array[index]
    )

x = np.arange(48, dtype=np.float32).reshape(4, 4, 3)
keys = jax.random.split(jax.random.key(9), 4)
tree = {
    "rows": spread(x, ("a", "b")),
    "columns": spread(x, None, "a"),
    "cells": spread(x.astype(jnp.bfloat16), "b", "a"),
    "copies": spread(x),
    "none": spread(np.zeros((0, 3), np.float32)),
    "number": spread(np.array(7, np.int32)),
    "keys": spread(keys, "a"),
    "local": jnp.arange(3),
    "host": np.arange(5),
    "plain": {"count": 3, "rate": float("nan")},
}

def same(a, b):
    def parts(leaf):
        if not isinstance(leaf, jax.Array):
            return np.asarray(leaf).tobytes()
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        return [np.asarray(shard.data).tobytes() for shard in leaf.addressable_shards]
    return jax.tree.map(parts, a) == jax.tree.map(parts, b)

snapshots = store.Snapshots(folder / "from-two", keep=1)
assert snapshots.save(1, tree, meta={"by": "two"}).name == "step-000000000001"
assert snapshots.save(2, tree, meta={"by": "two"}).is_dir()
assert snapshots.steps() == [2]
back, meta = snapshots.load(tree)
assert meta == {"by": "two"} and same(back, tree)
assert back["columns"].sharding == tree["columns"].sharding

# What differs between the processes is no snapshot.
for leaf in (jnp.full(2, rank), np.full(2, rank), rank):
    try:
        snapshots.save(3, {"mine": leaf, "rows": tree["rows"]})
        raise SystemExit("different values were saved")
    except store.MismatchError as error:
        assert "Processes [1]" in str(error), error
assert snapshots.steps() == [2]
assert rank == 1 or len(list(snapshots.folder.iterdir())) == 1

# A failure in one process is a failure in both, and nobody waits for ever.
try:
    snapshots.save(3, {"rows": tree["rows"], "bad": np.array([None] if rank == 1 else [1])})
    raise SystemExit("a bad tree was saved")
except store.StoreError as error:
    assert isinstance(error, store.UnstorableError) == (rank == 1), error
    assert rank == 1 or "process [1]" in str(error), error
assert snapshots.steps() == [2]

# What one process wrote, two can read.
back, meta = store.Snapshots(folder / "from-one").load(tree)
assert meta == {"by": "one"} and same(back, tree)
jax.distributed.shutdown()
print("done")
"""


def local_tree() -> dict:
    x = jnp.arange(48, dtype=jnp.float32).reshape(4, 4, 3)
    return {
        "rows": x,
        "columns": x,
        "cells": x.astype(jnp.bfloat16),
        "copies": x,
        "none": jnp.zeros((0, 3)),
        "number": jnp.int32(7),
        "keys": jax.random.split(jax.random.key(9), 4),
        "local": jnp.arange(3),
        "host": np.arange(5),
        "plain": {"count": 3, "rate": float("nan")},
    }


def test_two_processes_write_and_one_reads_and_the_other_way_round(tmp_path: Path):
    tree = local_tree()
    store.Snapshots(tmp_path / "from-one").save(5, tree, meta={"by": "one"})
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(rank), str(port), str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        output = [process.communicate(timeout=150)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    for text in output:
        assert text.strip().endswith("done"), "\n".join(output)

    snapshots = store.Snapshots(tmp_path / "from-two")
    files = sorted(file.name for file in (snapshots.folder / "step-000000000002").iterdir())
    assert files == ["process-00000-of-00002.loom", "process-00001-of-00002.loom"]
    back, meta = snapshots.load(tree)
    assert meta == {"by": "two"}
    assert back["plain"]["count"] == 3
    for name in ("rows", "columns", "cells", "copies", "none", "number", "local", "host"):
        assert np.array_equal(np.asarray(back[name]), np.asarray(tree[name])), name
    assert np.array_equal(jax.random.key_data(back["keys"]), jax.random.key_data(tree["keys"]))
    check_nothing_is_stored_twice(snapshots.folder / "step-000000000002")
    check_parts_that_are_missing(snapshots, tree)


def check_nothing_is_stored_twice(folder: Path) -> None:
    first, second = (
        {row.path: row.stored for row in store.inspect(file)} for file in sorted(folder.iterdir())
    )
    assert first["['rows']"] > 0
    assert second["['rows']"] > 0
    assert first["['columns']"] > 0
    assert second["['columns']"] > 0
    assert (first["['copies']"] > 0) != (second["['copies']"] > 0)
    assert second["['local']"] == second["['host']"] == 0


def check_parts_that_are_missing(snapshots: store.Snapshots, tree: dict) -> None:
    folder = snapshots.folder / "step-000000000002"
    with pytest.raises(store.DamagedError, match=r"\['rows'\] is incomplete"):
        store.load(folder / "process-00000-of-00002.loom", like=tree)
    (folder / "process-00001-of-00002.loom").unlink()
    with pytest.raises(store.DamagedError, match=r"incomplete.*no older"):
        snapshots.load(tree)
