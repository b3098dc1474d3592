"""A folder of snapshots: the last few states of a run, from any number of processes."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from errno import ENOENT
from pathlib import Path
from typing import Any, NamedTuple

from jaxtyping import PyTree

from worldloom import _processes
from worldloom._way import way
from worldloom.store import _together
from worldloom.store._archive import check_level
from worldloom.store._errors import (
    ArgumentError,
    DamagedError,
    Flaw,
    ForeignFileError,
    MissingError,
)
from worldloom.store._files import atomic_write, disk_errors, sync_folder
from worldloom.store._format import Reader, open_reader, write
from worldloom.store._join import read_leaves
from worldloom.store._leaves import describe
from worldloom.store._manifest import Manifest, Origin, checked_meta, structure_of
from worldloom.store._shards import my_boxes
from worldloom.store._template import check, fill
from worldloom.store._tree import take_apart

_FOLDER = re.compile(r"step-(\d{12,})(?:\.r(\d+))?")
_FILE = re.compile(r"process-(\d{5,})-of-(\d{5,})\.loom")
_WRITING = ".writing"
_TRASH = ".trash-"


class _Found(NamedTuple):
    """A complete snapshot folder. Saving a step again adds a revision, then drops the old."""

    step: int
    revision: int
    path: Path


class Snapshots:
    """The newest `keep` snapshots of a pytree, each a folder with one file a process.

    Every process writes the shards it holds; process 0 renames the folder into place when all
    are done, and removes older snapshots. So a snapshot is whole or not there. It loads on any
    number of processes and devices. With several processes, all must call `save` together, and
    the folder must be on a disk they share.

    **Arguments:**

    - `folder`: made by the first `save`. One run writes to a folder at a time.
    - `keep`: how many snapshots to keep, at least 1. With 2 or more, an older one is left if
      the newest is ever damaged.
    - `level`: zstd level, 1 (fast) to 22 (small).

    ```python
    import jax.numpy as jnp
    from worldloom import store

    snapshots = store.Snapshots("checkpoints", keep=2)
    for step in (100, 200, 300):
        snapshots.save(step, {"x": jnp.full(4, step)}, meta={"loss": 0.5})
    assert snapshots.steps() == [200, 300]
    tree, meta = snapshots.load({"x": jnp.zeros(4, jnp.int32)})
    ```
    """

    def __init__(self, folder: str | os.PathLike[str], *, keep: int = 2, level: int = 3):
        if keep < 1:
            raise ArgumentError(f"keep is {keep}; at least 1 snapshot must be kept.")
        check_level(level)
        self.folder = Path(folder)
        self.keep = keep
        self.level = level

    def save(self, step: int, tree: PyTree, *, meta: Mapping[str, Any] | None = None) -> Path:
        """Write a snapshot and return its folder; older ones beyond `keep` are removed.

        Arrays that are spread over processes are written in parts, each once. Everything else
        (arrays of one process, NumPy arrays, plain values) must be equal in all processes; this
        is checked, and process 0 writes it. Leaves that are neither arrays nor plain values are
        left out, as in `store.save`. A step may be saved again, but not one before the newest.
        """
        if step < 0:
            raise ArgumentError(f"step is {step}; it must not be negative.")
        origin = Origin(step, _processes.index(), _processes.count())
        writing = self.folder / _WRITING
        with _together.everyone(f"prepare snapshot {step}"):
            structure, found = take_apart(tree)
            leaves = [leaf for _, leaf in found]
            described = tuple(describe(path, leaf) for path, leaf in found)
            manifest = Manifest(structure, described, (), checked_meta(meta), origin)
            target = self._next_path(step)
            if newer := [other for other in self.steps() if other > step]:
                raise ArgumentError(
                    f"step is {step}, but {str(self.folder)!r} has snapshots of {newer}."
                    + way(" To go back, delete(...) those first.")
                )
            if origin.process == 0:
                self._prepare(writing)
        try:
            _together.agree(manifest, leaves)
            with _together.everyone(f"write snapshot {step}"):
                name = f"process-{origin.process:05}-of-{origin.processes:05}.loom"
                with atomic_write(writing / name) as file:
                    write(file, manifest, my_boxes(leaves), self.level)
        except BaseException:
            if origin.process == 0:
                shutil.rmtree(writing, ignore_errors=True)
            raise
        with _together.everyone(f"finish snapshot {step}"):
            if origin.process == 0:
                with disk_errors("finish", target):
                    os.rename(writing, target)
                    sync_folder(self.folder)
                    self._prune()
        return target

    def steps(self) -> list[int]:
        """Steps of the complete snapshots, oldest first."""
        return [found.step for found in self._newest_revisions()]

    def latest(self) -> int | None:
        """Step of the newest snapshot, or `None` if there is none."""
        steps = self.steps()
        return steps[-1] if steps else None

    def load(self, like: PyTree, *, step: int | None = None) -> tuple[PyTree, dict[str, Any]]:
        """The tree and the meta mapping of snapshot `step`; of the newest one by default.

        `like` is a template as in `store.load`; its shardings decide where the data go, however
        many processes wrote them. A newest snapshot that is damaged is an error which lists the
        older ones: to go back is your decision, `load(like, step=...)` and `delete`.
        """
        with self._opened(step) as readers:
            manifest = readers[0].manifest
            with readers[0].naming_flaws():
                check(f"Snapshot {str(readers[0].path.parent)!r}", manifest.leaves, like)
            tree = fill(like, manifest.leaves, read_leaves(readers, max_bytes=None, copied=True))
            return tree, manifest.meta

    def read_meta(self, *, step: int | None = None) -> dict[str, Any]:
        """The meta mapping of snapshot `step`, by default the newest, without its data."""
        with self._opened(step) as readers:
            return readers[0].manifest.meta

    def delete(self, step: int) -> None:
        """Remove the snapshot of `step`. With several processes, let one of them do it."""
        found = [found for found in self._all() if found.step == step]
        if not found:
            reason = f"There is no snapshot of step {step}; there are {self.steps()}"
            raise MissingError(ENOENT, reason, str(self.folder))
        with disk_errors("delete", found[0].path):
            for snapshot in found:
                self._remove(snapshot.path)

    @contextlib.contextmanager
    def _opened(self, step: int | None) -> Iterator[list[Reader]]:
        """Readers of all files of a snapshot. If it is damaged, the error tells what else is."""
        snapshots = {found.step: found.path for found in self._newest_revisions()}
        if not snapshots:
            raise MissingError(ENOENT, "There is no snapshot in the folder", str(self.folder))
        wanted = max(snapshots) if step is None else step
        if wanted not in snapshots:
            reason = f"There is no snapshot of step {wanted}; there are {list(snapshots)}"
            raise MissingError(ENOENT, reason, str(self.folder))
        try:
            with _open_all(snapshots[wanted], wanted) as readers:
                yield readers
        except DamagedError as error:
            older = [other for other in snapshots if other < wanted]
            advice = (
                f"Older snapshots: {older}. To go back: load(like, step={older[-1]})."
                if older
                else "There is no older snapshot."
            )
            raise DamagedError(f"Snapshot {wanted} cannot be loaded. {error} {advice}") from error

    def _prepare(self, writing: Path) -> None:
        """Make the folder and an empty place to write in; remove what killed writers left."""
        with disk_errors("prepare", self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            for entry in self.folder.iterdir():
                if entry.name == _WRITING or entry.name.startswith(_TRASH):
                    shutil.rmtree(entry)
            writing.mkdir()

    def _next_path(self, step: int) -> Path:
        taken = [found.revision for found in self._all() if found.step == step]
        revision = max(taken, default=-1) + 1
        return self.folder / (f"step-{step:012}" + (f".r{revision}" if revision else ""))

    def _prune(self) -> None:
        kept = self._newest_revisions()[-self.keep :]
        for found in self._all():
            if found not in kept:
                self._remove(found.path)

    def _remove(self, path: Path) -> None:
        # Renamed first: a kill while deleting leaves rubbish, not half a snapshot.
        trash = self.folder / (_TRASH + path.name)
        os.rename(path, trash)
        shutil.rmtree(trash)

    def _all(self) -> list[_Found]:
        with disk_errors("list", self.folder):
            names = os.listdir(self.folder) if self.folder.exists() else []
        matches = [match for name in names if (match := _FOLDER.fullmatch(name))]
        return sorted(
            _Found(int(match[1]), int(match[2] or 0), self.folder / match[0]) for match in matches
        )

    def _newest_revisions(self) -> list[_Found]:
        return sorted({found.step: found for found in self._all()}.values())


@contextlib.contextmanager
def _open_all(path: Path, step: int) -> Iterator[list[Reader]]:
    """Readers of all files of one snapshot, which must belong together."""
    with disk_errors("read", path):
        files = sorted(name for name in os.listdir(path) if _FILE.fullmatch(name))
    total = {int(match[2]) for name in files if (match := _FILE.fullmatch(name))}
    if len(total) != 1 or len(files) != min(total):
        raise DamagedError(f"{str(path)!r} is incomplete: it has the files {files}.")
    with contextlib.ExitStack() as stack:
        try:
            readers = [stack.enter_context(open_reader(path / name)) for name in files]
        except (ForeignFileError, MissingError) as error:
            raise DamagedError(str(error)) from error
        first = structure_of(readers[0].manifest)
        for process, reader in enumerate(readers):
            manifest = reader.manifest
            with reader.naming_flaws():
                if manifest.origin != Origin(step, process, len(readers)):
                    raise Flaw(f"it belongs to another snapshot ({manifest.origin})")
                if structure_of(manifest) != first:
                    raise Flaw("its tree is not the tree of the other files")
        yield readers
