"""Checkpoints of a run, and what must agree before one is resumed."""

from __future__ import annotations

import dataclasses
import datetime
import shlex
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

import worldloom
from worldloom import store
from worldloom._errors import WorldloomError
from worldloom.loop._identity import differences, in_words, plain

if TYPE_CHECKING:
    from worldloom.loop._setup import Setup

_NAMED = 4  # differences that an error names


class ResumeError(WorldloomError, ValueError):
    """A checkpoint is in the way, or belongs to another run."""

    differences: tuple[tuple[str, Any, Any], ...] = ()
    """Where the run in the folder is another one: names, and what they are there and here."""
    options: bool = False
    """Whether the names are those of the configuration, or `length`."""
    folder: str = ""
    advice: str = ""


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """Where and how often a run saves itself.

    **Arguments:**

    - `folder`: a folder for this run alone. Records without a sink of their own go there too.
    - `chunks`: save after so many chunks, or
    - `seconds`: after so many seconds, at the end of the running chunk; by default 60.
    - `keep`: how many checkpoints stay on disk.
    - `config`: what else makes this run the one it is, by name: options, a seed. It is kept with
        the run, `read_run` gives it back, and a run goes on only with the same values.

    Saving is atomic: a run killed while it writes resumes from the checkpoint before.
    """

    folder: str | Path
    chunks: int | None = None
    seconds: float | int | None = None
    keep: int = 2
    config: Mapping[str, Any] = dataclasses.field(default_factory=dict)

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


@dataclasses.dataclass(frozen=True)
class SavedRun:
    """What is known of a run that saved itself."""

    steps: int
    """How many steps are done."""
    length: int
    """How many there are to do."""
    config: dict[str, Any]
    """The configuration that the run was given with its checkpoint."""
    version: str
    """The Worldloom that began it."""
    command: str
    """The command line that began it."""
    began: str
    """When, in ISO 8601."""


def read_run(folder: str | Path) -> SavedRun:
    """What the checkpoint folder of a run says about it.

    **Arguments:**

    - `folder`: that of a [`worldloom.Checkpoint`][].

    **Raises:** [`worldloom.ResumeError`][] if no run has saved itself there.

    ```python
    import jax.numpy as jnp
    import worldloom as wl

    saved = wl.Checkpoint("halved", config={"rate": 0.5})
    wl.run(lambda x, t: (0.5 * x, None), jnp.ones(3), length=4, checkpoint=saved)
    assert wl.read_run("halved").config == {"rate": 0.5}
    ```
    """
    snapshots = _snapshots(folder)
    if snapshots.latest() is None:
        inner = sorted(p.parent.name for p in Path(folder).glob("*/state"))
        hint = f"; its folders {', '.join(inner)} may hold runs" if inner else ""
        raise ResumeError(f"{folder} holds no run that has saved itself{hint}")
    meta = snapshots.read_meta()
    run = meta["run"]
    return SavedRun(
        steps=meta["done"],
        length=run["length"],
        config=run["config"],
        version=run["version"],
        command=run["command"],
        began=run["began"],
    )


def _snapshots(folder: str | Path, keep: int = 2) -> store.Snapshots:
    return store.Snapshots(Path(folder) / "state", keep=keep)


class Keeper:
    """Saves a run now and then, and finds it again."""

    def __init__(self, checkpoint: Checkpoint, setup: Setup):
        self._checkpoint = checkpoint
        self._setup = setup
        self._snapshots = _snapshots(checkpoint.folder, checkpoint.keep)
        self._chunks = 0
        self._saved_at = time.monotonic()
        self._about = {
            "length": setup.length,
            "config": plain(checkpoint.config),
            "facts": setup.identity(setup.length),
            "version": worldloom.__version__,
            "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
            "began": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        }
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
        """The newest checkpoint as (steps done, arrays), or `None` if there is none.

        One that has done no step, of a run that is not this one, counts as none.
        """
        if self._snapshots.latest() is None:
            return None
        meta = self._snapshots.read_meta()
        done, theirs = int(meta["done"]), meta["run"]
        if done == 0 and self._differences(theirs, 0)[0]:
            return None
        found, options = self._differences(theirs, done)
        if found:
            raise _another_run(self._checkpoint.folder, found, options)
        tree, _ = self._snapshots.load(like)
        if "window" in meta:
            self._setup.refresh(done - 1, self._setup.length)
            if meta["window"] != self._setup.window():
                raise ResumeError(
                    f"the data that the run in {self._checkpoint.folder} reads as it goes have "
                    f"changed: those of step {done - 1} are not what they were"
                )
        self._about |= {name: theirs[name] for name in ("version", "command", "began")}
        self.saved = done
        return done, tree

    def _differences(
        self, theirs: dict[str, Any], done: int
    ) -> tuple[list[tuple[str, Any, Any]], bool]:
        """Where another run is not this one, and whether that is in its options, which say it all.

        A length may be larger. Options that only one of them was given are not compared.
        """
        given, mine = theirs["config"], self._about["config"]
        options = [(n, given[n], mine[n]) for n in mine if n in given and given[n] != mine[n]]
        lengths = theirs["length"], self._about["length"]
        if not options and lengths[1] < lengths[0]:
            options = [("length", *lengths)]
        facts = {} if options else self._setup.identity(min(lengths))
        return options or differences(theirs["facts"], facts, done), bool(options)

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
        meta = {"done": done, "run": self._about}
        if done and self._setup.streams:
            meta["window"] = self._setup.window()
        self._snapshots.save(done, tree, meta=meta)
        self.saved = done
        self._chunks = 0
        self._saved_at = time.monotonic()


def _another_run(
    folder: str | Path, found: list[tuple[str, Any, Any]], options: bool
) -> ResumeError:
    clauses = [in_words(*one) for one in found[:_NAMED]]
    more = f"; and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    advice = "Give what that run was given, or another folder"
    if found[0][0] == "length":
        advice = f"A run can be prolonged, but not shortened. {advice}"
    error = ResumeError(f"{folder} holds another run: {'; '.join(clauses)}{more}. {advice}")
    error.differences, error.options = tuple(found), options
    error.folder, error.advice = str(folder), advice
    return error
