"""Checkpoints of a run, and what must agree before one is resumed."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import jax

from worldloom import store
from worldloom._errors import WorldloomError


class ResumeError(WorldloomError, ValueError):
    """A checkpoint is in the way, or belongs to another run."""


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """Where and how often a run saves itself.

    **Arguments:**

    - `folder`: a folder for this run alone. Records without a sink of their own go there too.
    - `chunks`: save after so many chunks, or
    - `seconds`: after so many seconds, at the end of the running chunk; by default 60.
    - `keep`: how many checkpoints stay on disk.

    Saving is atomic: a run killed while it writes resumes from the checkpoint before.
    """

    folder: str | Path
    chunks: int | None = None
    seconds: float | None = None
    keep: int = 2

    def __post_init__(self):
        if self.chunks is not None and self.seconds is not None:
            raise ValueError("Checkpoint: give `chunks` or `seconds`, not both")
        if self.chunks is not None and self.chunks < 1:
            raise ValueError(f"Checkpoint(chunks={self.chunks}): must be at least 1")
        if self.seconds is not None and self.seconds < 0:
            raise ValueError(f"Checkpoint(seconds={self.seconds}): must not be negative")

    @property
    def records(self) -> Path:
        """Where records go if the run is given no sink."""
        return Path(self.folder) / "records"


class Keeper:
    """Saves a run now and then, and finds it again."""

    def __init__(self, checkpoint: Checkpoint, description: dict[str, Any]):
        self._checkpoint = checkpoint
        self._description = description
        self._snapshots = store.Snapshots(Path(checkpoint.folder) / "state", keep=checkpoint.keep)
        self._chunks = 0
        self._saved_at = time.monotonic()
        self.saved: int | None = None
        """The step of the newest checkpoint that this process wrote or read."""

    @property
    def folder(self) -> Path:
        """Where the run is saved."""
        return Path(self._checkpoint.folder)

    def refuse_existing(self) -> None:
        """A new run must not overwrite an old one."""
        if self._snapshots.latest() is not None:
            raise ResumeError(
                f"{self._checkpoint.folder} holds the checkpoint of a run at step "
                f"{self._snapshots.latest()}; give resume=True to go on with it, or another folder"
            )

    def load(self, like: Any) -> tuple[int, Any] | None:
        """The newest checkpoint as (steps done, arrays), or `None` if there is none."""
        if self._snapshots.latest() is None:
            return None
        meta = self._snapshots.read_meta()
        for name, mine in self._description.items():
            theirs = meta["run"].get(name)
            if theirs != mine:
                raise ResumeError(
                    f"the checkpoint in {self._checkpoint.folder} is of another run: its {name} is "
                    f"{theirs}, but this run has {mine}"
                )
        tree, meta = self._snapshots.load(like)
        self.saved = int(meta["done"])
        return self.saved, tree

    def due(self) -> bool:
        """Whether to save now, at the end of one more chunk."""
        self._chunks += 1
        if self._checkpoint.chunks is not None:
            return self._chunks >= self._checkpoint.chunks
        seconds = 60.0 if self._checkpoint.seconds is None else self._checkpoint.seconds
        return time.monotonic() - self._saved_at >= seconds

    def save(self, done: int, tree: Any) -> None:
        """Save the run as it is after `done` steps."""
        jax.block_until_ready(tree)
        self._snapshots.save(done, tree, meta={"done": done, "run": self._description})
        self.saved = done
        self._chunks = 0
        self._saved_at = time.monotonic()
