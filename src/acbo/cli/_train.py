"""`worldloom acbo train`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from acbo.cli._options import (
    add_command,
    check_at_least,
    load_surrogate,
    told_by_flags,
)
from worldloom.cli import (
    Command,
    OutputFolder,
    UsageError,
    naming_options,
    options_of,
    recorded_options,
    seed_or_fresh,
)

if TYPE_CHECKING:
    from jax.sharding import Mesh

    from acbo.surrogate import Curriculum

Mechanism = Literal["linear", "polynomial", "fourier"]


@dataclasses.dataclass(frozen=True)
class Train:
    """What `worldloom acbo train` does."""

    what: Annotated[
        Literal["surrogate", "policy"],
        tyro.conf.arg(metavar="surrogate|policy", help_behavior_hint=""),
        tyro.conf.Positional,
    ] = "surrogate"
    """The network that finds graphs, or the one that chooses interventions."""

    out: Annotated[Path, OutputFolder(), tyro.conf.arg(aliases=["-o"])] = Path("out/acbo")
    """Folder for the network (surrogate.loom, policy.loom) and the page of its training."""

    steps: int = 2000
    """How many steps."""

    variables: tuple[int, ...] = (5,)
    """Largest numbers of variables, one a lesson: `5 10 20` trains on 2-5, 5-10 and 10-20. A policy
    plays problems of 3 variables up to the largest."""

    rows: tuple[int, int] = (16, 128)
    """Smallest and largest number of samples in a table."""

    batch: int = 32
    """Tables in a step, or problems in a step of a policy."""

    mechanisms: tuple[Mechanism, ...] = ("linear", "fourier")
    """How effects follow from causes. A policy takes the first."""

    hidden: int = 64
    """Numbers that a pair of variables has inside the surrogate."""

    blocks: int = 4
    """How often pairs look at each other."""

    learning_rate: float = 1e-3
    """Its highest value."""

    group_size: int = 8
    """Policy: rollouts of the same problem."""

    observed: int = 20
    """Policy: samples at the beginning."""

    budget: int = 10
    """Policy: interventions in a rollout."""

    surrogate: Path | None = None
    """Policy: the surrogate to look through, instead of the one in the package."""

    checkpoint: Annotated[Path | None, OutputFolder(parents=True)] = None
    """A folder to save the run in. A run that finds itself there goes on, bit for bit."""

    save_seconds: float = 60.0
    """How often it is saved."""

    seed: int | None = None
    """For everything random; left out, a fresh one, which is printed."""

    progress: bool = True
    """Show a bar."""

    def __post_init__(self) -> None:
        check_at_least(self, steps=1, batch=1, group_size=2, observed=2, budget=1)
        sizes = self.variables
        if not sizes or list(sizes) != sorted(set(sizes)) or sizes[0] < 2:
            raise UsageError(
                f"--variables {' '.join(map(str, sizes))}: expected numbers from 2 up, in rising "
                "order"
            )
        if not self.mechanisms:
            raise UsageError("--mechanisms: name at least one of linear, polynomial, fourier")
        if self.save_seconds < 0:
            raise UsageError(f"--save-seconds {self.save_seconds:g}: expected 0 or more")

    def saved(self) -> dict[str, Any]:
        """Where a trainer saves itself, and that it goes on from there."""
        import worldloom as wl

        if self.checkpoint is None:
            return {}
        told = options_of(self, without=("out", "checkpoint", "save_seconds", "progress"))
        where = wl.Checkpoint(self.checkpoint, seconds=self.save_seconds, config=told)
        return {"checkpoint": where, "resume": True}


def run(config: Train) -> None:
    """Train, write the network and a page, and say how it went."""
    from acbo._files import save_network
    from worldloom import mesh

    mesh.use_every_core()
    mesh.start()
    mesh.require_same(options_of(config))
    seed = seed_or_fresh(config.seed, recorded_options(config.checkpoint).get("seed"))
    config = dataclasses.replace(config, seed=seed)
    with naming_options({"length": "steps"}):
        result, network = (_surrogate if config.what == "surrogate" else _policy)(config, seed)
    import jax

    if jax.process_index() != 0:
        return
    path = config.out / f"{config.what}.loom"
    save_network(path, network)
    print(f"{result.steps:,} steps; compiling {result.compile_seconds:.0f} s, ", end="")
    print(f"running {result.run_seconds:.0f} s; seed {seed}")
    print(path)
    print(_page(config, result).save(config.out / f"{config.what}.html"))


def _surrogate(config: Train, seed: int) -> tuple[Any, Any]:
    import jax

    from acbo.surrogate import SurrogateConfig, TrainingConfig, train_surrogate
    from worldloom import mesh

    devices = _devices_for(config.batch)
    with told_by_flags():
        lessons = curriculum(config)
        sizes = SurrogateConfig(hidden=config.hidden, blocks=config.blocks)
        how = TrainingConfig(steps=config.steps, learning_rate=config.learning_rate)
    result = train_surrogate(
        jax.random.key(seed),
        lessons,
        surrogate=sizes,
        config=how,
        **config.saved(),
        progress="training the surrogate" if config.progress else False,
        devices=devices,
    )
    network = result.state.average
    return result, network if devices is None else mesh.gather(network)


def _devices_for(batch: int) -> Mesh | None:
    """The devices that a batch is spread over; `None` for one."""
    import jax

    from worldloom import mesh

    count = jax.device_count()
    if jax.process_count() == 1:  # some cores may rest; a process may not
        count = next(few for few in range(count, 0, -1) if batch % few == 0)
    elif batch % count:
        raise UsageError(f"--batch {batch}: {count} devices do not divide it; give a multiple")
    return mesh.worlds_mesh(jax.devices()[:count]) if count > 1 else None


def _policy(config: Train, seed: int) -> tuple[Any, Any]:
    import jax

    from acbo.evaluation._networks import surrogate_or_shipped
    from acbo.optimise import ProblemPrior
    from acbo.policy import GRPOConfig, train_policy
    from acbo.scm import Family

    if jax.process_count() > 1:
        raise UsageError("a policy is trained by one process; only `train surrogate` is spread")
    surrogate = surrogate_or_shipped(load_surrogate(config.surrogate))
    with told_by_flags():
        largest = config.variables[-1]
        family = Family(mechanism=config.mechanisms[0], edges_per_variable=(0.5, 1.5))
        how = GRPOConfig(
            group_size=config.group_size,
            problems=config.batch,
            total_steps=config.steps,
            learning_rate=config.learning_rate,
            variables=(min(3, largest), largest),
            observed=config.observed,
            budget=config.budget,
            prior=ProblemPrior(family=family),
        )
    result = train_policy(
        jax.random.key(seed),
        surrogate,
        config=how,
        **config.saved(),
        progress="training the policy" if config.progress else False,
    )
    return result, result.state.network


def curriculum(config: Train) -> Curriculum:
    """One lesson a size, and all mechanisms alike."""
    from acbo.scm import Family
    from acbo.surrogate import Curriculum, Lesson

    smallest = (2, *config.variables[:-1])
    return Curriculum(
        tuple(
            Lesson(limits, config.rows, config.batch)
            for limits in zip(smallest, config.variables, strict=True)
        ),
        tuple(
            (Family(mechanism=name, edges_per_variable=(0.5, 1.6)), 1.0)
            for name in config.mechanisms
        ),
    )


def _page(config: Train, result: Any) -> Any:
    from acbo.report import learning_curves
    from worldloom import report

    page = report.Report(
        f"Training a {config.what}",
        subtitle=f"{result.steps:,} steps, data drawn on the device, one compiled loop.",
    )
    page.add(learning_curves(result.records))
    add_command(page, "worldloom acbo train", config)
    return page


COMMAND = Command(
    "train",
    "Train a network that finds graphs, or one that chooses interventions.",
    Train,
    run,
    examples=(
        (
            "worldloom acbo train surrogate --steps 5000 --checkpoint runs/large",
            "a run that can be stopped and goes on",
        ),
        ("worldloom launch -n 2 -- worldloom acbo train surrogate", "two processes, one batch"),
        ("worldloom acbo train policy --surrogate out/acbo/surrogate.loom", "on your own"),
    ),
)
