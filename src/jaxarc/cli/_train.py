"""`worldloom arc train`."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from worldloom.cli import (
    Command,
    OutputFile,
    OutputFolder,
    UsageError,
    naming_options,
    options_of,
    recorded_options,
    seed_or_fresh,
)

if TYPE_CHECKING:
    from jaxarc.data import TaskSet
    from jaxarc.envs import JaxArcConfig
    from jaxarc.training import Metrics, PPOConfig
    from worldloom import Checkpoint

_ROWS = 9  # lines of the table of figures


@dataclasses.dataclass(frozen=True)
class Train:
    """What `worldloom arc train` does."""

    dataset: str = "tiny"
    """The tasks: tiny (made up, learned in a minute), or AGI1-train, AGI2-train, ..."""

    subset: str = ""
    """Only those of a named subset, such as up-to-5x5."""

    tasks: tuple[str, ...] = ()
    """Only tasks with these ids."""

    actions: Literal["point", "bbox"] = "point"
    """How an action selects cells."""

    operations: tuple[int, ...] = ()
    """Ids of the operations that may be used; all edits by default."""

    episode_steps: int = 30
    """After so many steps an episode is cut off."""

    demos: int = 1
    """How many demonstrations the policy sees beside its grid."""

    worlds: int = 256
    """How many worlds play at once, over all processes."""

    steps: int = 16
    """How many steps each of them takes before an update."""

    updates: int = 100
    """How often the policy plays and learns."""

    epochs: int = 2
    """How often what was played is gone through in an update."""

    minibatches: int = 4
    """In how many parts."""

    learning_rate: float = 1e-3
    """Of Adam."""

    entropy_weight: float = 0.01
    """How much it is worth not to decide too early."""

    width: int = 32
    """Features of a cell in the network."""

    layers: int = 2
    """Convolutions of the network."""

    seed: int | None = None
    """Decides the network, tasks and actions; left out, a fresh one, which is printed."""

    checkpoint: Annotated[Path | None, OutputFolder(parents=True)] = None
    """A folder to save the run in. A run that finds itself there goes on; more updates prolong
    it."""

    save_seconds: float = 60.0
    """How often it is saved."""

    out: Annotated[Path | None, OutputFile(), tyro.conf.arg(aliases=["-o"])] = None
    """Write the trained network to this file, as `worldloom.store.save` does."""

    def ppo(self) -> PPOConfig:
        """The same as the trainer takes it."""
        from jaxarc.training import PPOConfig

        names = {field.name for field in dataclasses.fields(PPOConfig)}
        with _as_options():
            return PPOConfig(**{k: v for k, v in vars(self).items() if k in names})

    def saved(self) -> Checkpoint | None:
        """Where the run is saved, with what it was told. More updates may follow."""
        import worldloom as wl

        if self.checkpoint is None:
            return None
        told = options_of(self, without=("out", "checkpoint", "save_seconds", "updates"))
        return wl.Checkpoint(self.checkpoint, seconds=self.save_seconds, config=told)

    def environment(self, tasks: TaskSet) -> JaxArcConfig:
        """The configuration of the environment to train in."""
        from jaxarc.training._tasks import config_for

        with _as_options():
            return config_for(
                tasks,
                actions=self.actions,
                operations=self.operations or None,
                episode_steps=self.episode_steps,
                demos=self.demos,
            )


@contextlib.contextmanager
def _as_options() -> Iterator[None]:
    """Name the option of this command for which a configuration was refused."""
    from jaxarc.envs import ConfigError

    try:
        yield
    except ConfigError as error:
        words = {"max_episode_steps": "episode_steps", "allowed_operations": "operations"}
        if error.option is None:
            raise UsageError(str(error)) from error
        option = words.get(error.option, error.option).replace("_", "-")
        raise UsageError(f"--{option}={error.reason}") from error


def run(config: Train) -> None:
    """Train, alone or with other processes; the first prints how it went."""
    from worldloom import mesh

    # Refused before anybody waits for anybody.
    ppo, tasks = config.ppo(), _tasks(config)
    played = config.environment(tasks)
    with mesh.joined() as first, naming_options({"length": "updates"}):
        mesh.require_same(options_of(config))
        seed = seed_or_fresh(config.seed, recorded_options(config.checkpoint).get("seed"))
        _train(dataclasses.replace(config, seed=seed), seed, ppo, tasks, played, first)


def _train(
    config: Train,
    seed: int,
    ppo: PPOConfig,
    tasks: TaskSet,
    played: JaxArcConfig,
    first: bool,
) -> None:
    import jax

    import worldloom as wl
    from jaxarc.cli._rollout import _Clock
    from jaxarc.envs import make
    from jaxarc.training import train
    from worldloom import mesh, store

    env = make(tasks, config=played)
    clock = _Clock(wl.ProgressBar("training", delay=0.0))
    result = train(
        env,
        jax.random.key(seed),
        config=ppo,
        checkpoint=config.saved(),
        resume=config.checkpoint is not None,
        progress=clock if first else False,
    )
    network = mesh.gather(result.state.network)
    if not first:
        return
    height, width = env.config.canvas
    weights = sum(leaf.size for leaf in jax.tree.leaves(network))
    print(
        f"{tasks.name}: {len(tasks)} tasks of up to {height} x {width}, {ppo.worlds:,} worlds x "
        f"{ppo.steps} steps x {ppo.updates:,} updates, {weights:,} weights, {_where()}, "
        f"seed {seed}"
    )
    print(_table(result.records))
    if clock.measured:
        print(f"  {clock.speed(ppo.worlds * ppo.steps)}, learning included")
    if config.out is not None:
        store.save(config.out, network)
        print(config.out)


def _tasks(config: Train) -> TaskSet:
    from jaxarc.data import NAMES, SUBSETS, UnknownTaskError, load
    from jaxarc.training import tiny_tasks

    if config.dataset != "tiny" and config.dataset not in NAMES:
        raise UsageError(f"no data set {config.dataset!r}; there are: tiny, {', '.join(NAMES)}")
    tasks = tiny_tasks() if config.dataset == "tiny" else load(config.dataset)
    if config.subset:
        if config.subset not in SUBSETS:
            raise UsageError(f"no subset {config.subset!r}; there are: {', '.join(SUBSETS)}")
        tasks = tasks.subset(config.subset)
    try:
        tasks = tasks.filter(ids=config.tasks) if config.tasks else tasks
    except UnknownTaskError as error:
        raise UsageError(str(error)) from error
    if not len(tasks):
        raise UsageError(f"no task of {config.dataset} is in the subset {config.subset!r}")
    return tasks


def _where() -> str:
    import jax

    count, processes = jax.device_count(), jax.process_count()
    devices = f"{count} device{'s' if count > 1 else ''}"
    return devices if processes == 1 else f"{devices} of {processes} processes"


def _table(metrics: Metrics) -> str:
    """Figures of some updates, from the first to the last."""
    import numpy as np

    last = len(metrics.reward) - 1
    lines = ["  update  reward a step  solved  episodes     loss  entropy  moved"]
    for i in np.unique(np.linspace(0, last, min(_ROWS, last + 1)).round().astype(int)):
        ended = float(metrics.episodes[i])
        share = f"{metrics.solved[i] / ended:.1%}" if ended else "-"
        losses = metrics.losses
        lines.append(
            f"  {i + 1:>6}  {metrics.reward[i]:>+13.4f}  {share:>6}  {ended:>8,.0f}"
            f"  {losses.loss[i]:>+7.4f}  {losses.entropy[i]:>7.3f}  {losses.divergence[i]:.4f}"
        )
    return "\n".join(lines)


COMMAND = Command(
    "train",
    "Train a policy by proximal policy optimisation; on one process or several.",
    Train,
    run,
    examples=(
        ("worldloom arc train", "made-up tasks, about a minute"),
        ("worldloom arc train --dataset AGI1-train --subset up-to-5x5 --updates 500", "real ones"),
        ("worldloom arc train --checkpoint runs/tiny", "a run that can be stopped and goes on"),
        ("worldloom launch -n 2 -- worldloom arc train --worlds 512", "on two processes"),
    ),
    details="""
A reward that rises says that the policy learns the demonstrations it plays, not that it would
solve a test.""",
)
