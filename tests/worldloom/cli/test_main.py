from __future__ import annotations

import dataclasses
import importlib.util
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import worldloom
from worldloom import WorldloomError
from worldloom._systems import SYSTEMS, System
from worldloom.cli import Command, UsageError, main
from worldloom.cli import _main as cli


@dataclasses.dataclass(frozen=True)
class Inner:
    rate: float = 0.5
    """How fast."""


@dataclasses.dataclass(frozen=True)
class Config:
    file: Path
    """What to read."""

    label: str = ""
    deep: bool = False
    inner: Inner = Inner()

    def __post_init__(self):
        if self.label == "forbidden":
            raise ValueError("label must not be forbidden")


@dataclasses.dataclass(frozen=True)
class Empty:
    pass


def parse(*words: str) -> Config:
    command = Command("try", "Try it.", Config, lambda config: None)
    return command.parse(words, "worldloom try")


def worldloom_process(*words: str, code: str = "", **options) -> subprocess.Popen[str]:
    start = f"from worldloom.cli._main import *\n{code}\nsys.exit(main({list(words)!r}))"
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(start)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def install(monkeypatch: pytest.MonkeyPatch, run, config: type = Empty) -> None:
    """Make `worldloom try` call `run`."""
    monkeypatch.setitem(cli.COMMANDS, "try", Command("try", "Try it.", config, run))


def test_help_at_every_level_has_examples(capsys: pytest.CaptureFixture[str]):
    assert main(["--help"]) == 0
    overview = capsys.readouterr().out
    for name, command in cli.COMMANDS.items():
        assert f"  {name:<10}{command.summary}" in overview
        assert main([name, "--help"]) == 0
        text = capsys.readouterr().out
        assert command.examples
        for line, _ in command.examples:
            assert line in text
        assert f"usage: worldloom {name}" in text


def test_no_command_is_wrong_usage_and_shows_the_help(capsys: pytest.CaptureFixture[str]):
    assert main([]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "worldloom doctor" in shown.err


def test_version(capsys: pytest.CaptureFixture[str]):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"worldloom {worldloom.__version__}\n"


def test_an_unknown_command_is_wrong_usage_with_a_suggestion(capsys: pytest.CaptureFixture[str]):
    assert main(["doctr"]) == 2
    assert "Did you mean 'worldloom doctor'?" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["doctor", "--jsn"], ["launch", "-n", "two"], ["bench", "x=1"]])
def test_a_wrong_flag_is_wrong_usage(words: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(words) == 2
    assert capsys.readouterr().err


def test_the_help_does_not_start_jax():
    code = """
    import sys
    from worldloom.cli import main
    assert main(["--help"]) == main(["--version"]) == main(["launch", "--help"]) == 0
    heavy = {"jax", "jaxlib", "numpy", "equinox", "matplotlib", "jaxarc", "jaxtrace", "acbo"}
    assert not heavy & set(sys.modules), heavy & set(sys.modules)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=240)


def test_flags_overrides_and_a_file_fill_the_same_configuration(tmp_path: Path):
    path = tmp_path / "c.yaml"
    path.write_text("file: from-file\nlabel: a\ninner:\n  rate: 1\n")
    expected = Config(Path("x"), "b", True, Inner(2.0))
    assert parse("--file", "x", "--label", "b", "--deep", "--inner.rate", "2") == expected
    assert parse("file=x", "label=b", "deep=true", "inner.rate=2") == expected
    assert parse("--config", str(path)) == Config(Path("from-file"), "a", False, Inner(1.0))
    # The last word: flags over key=value, key=value over the file, the file over the defaults.
    mixed = parse(f"--config={path}", "inner.rate=3", "label=c", "--label", "d")
    assert mixed == Config(Path("from-file"), "d", False, Inner(3.0))
    # A flag may give what the file leaves out, even where it is required.
    path.write_text("label: a\n")
    assert parse("--config", str(path), "--file", "x") == Config(Path("x"), "a")


def test_a_value_with_an_equals_sign_stays_with_its_flag():
    assert parse("--file", "x", "--label", "deep=1") == Config(Path("x"), "deep=1")
    assert parse("--file", "x", "--deep", "label=b") == Config(Path("x"), "b", True)
    assert parse("--file", "x", "--no-deep", "label=b") == Config(Path("x"), "b")
    assert parse("--label=a=b", "file=x") == Config(Path("x"), "a=b")


def test_an_unknown_key_is_wrong_usage_with_a_suggestion(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    install(monkeypatch, lambda config: None, Config)
    assert main(["try", "lable=3"]) == 2
    assert "unknown key 'lable'. Did you mean 'label'?" in capsys.readouterr().err
    assert main(["try", "--config"]) == 2
    assert main(["try", "--config", "nowhere.yaml"]) == 2
    assert "no configuration file 'nowhere.yaml'" in capsys.readouterr().err
    assert main(["try"]) == 2  # tyro asks for --file
    assert "--file" in capsys.readouterr().err
    assert main(["try", "--file", "x", "--label", "forbidden"]) == 2
    assert "label must not be forbidden" in capsys.readouterr().err


def test_words_after_two_dashes_are_kept_for_the_command():
    @dataclasses.dataclass(frozen=True)
    class Wrapped:
        deep: bool = False
        command: tuple[str, ...] = ()

    command = Command("wrap", "Wrap it.", Wrapped, lambda config: None, rest="command")
    found = command.parse(["--deep", "--", "python", "--debug", "x=1", "--", "y"], "wrap")
    assert found == Wrapped(True, ("python", "--debug", "x=1", "--", "y"))
    with pytest.raises(UsageError, match="takes nothing after `--`"):
        Command("x", "X.", Empty, lambda config: None).parse(["--", "y"], "x")


def test_what_a_command_returns_is_the_exit_code(monkeypatch: pytest.MonkeyPatch):
    for returned, code in ((None, 0), (0, 0), (1, 1), (7, 7)):
        install(monkeypatch, lambda config, returned=returned: returned)
        assert main(["try"]) == code


class _Trouble(WorldloomError, ValueError):
    pass


def _raise(error: BaseException):
    def run(config):
        raise error

    return run


def test_an_error_of_ours_is_one_message(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    install(monkeypatch, _raise(_Trouble("the pot is empty; fill it")))
    assert main(["try"]) == 1
    assert capsys.readouterr().err == "worldloom: error: the pot is empty; fill it\n"
    with pytest.raises(_Trouble):
        main(["try", "--debug"])
    with pytest.raises(_Trouble):
        main(["--debug", "try"])


def test_an_error_of_others_is_one_message_and_debug_shows_where(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    install(monkeypatch, _raise(ZeroDivisionError("by nothing")))
    assert main(["try"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("worldloom: error: unexpected ZeroDivisionError in `worldloom try`: by")
    assert "--debug" in told
    with pytest.raises(ZeroDivisionError):
        main(["--debug", "try"])


def test_an_interrupt_exits_with_130_and_its_message(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    install(monkeypatch, _raise(worldloom.RunInterrupted("stopped; resume with resume=True")))
    assert main(["try"]) == 130
    assert capsys.readouterr().err == "worldloom: stopped; resume with resume=True\n"


SLEEP = """
import time, dataclasses
@dataclasses.dataclass(frozen=True)
class Empty: pass
def sleep(config):
    print("ready", flush=True)
    time.sleep(60)
COMMANDS["sleep"] = Command("sleep", "Sleep.", Empty, sleep)
def chatter(config):
    for i in range(int(input())): print("chatter")
COMMANDS["chatter"] = Command("chatter", "Talk.", Empty, chatter)
"""


def test_ctrl_c_exits_with_130():
    process = worldloom_process("sleep", code=SLEEP)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 130
    assert errors == "worldloom: interrupted\n"


@pytest.mark.parametrize("lines", [3, 100_000])
def test_a_closed_pipe_is_quiet(lines: int):
    """Few lines break when Python flushes them at the end; many break in the middle."""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    process = worldloom_process("chatter", code=SLEEP, env=buffered, stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    process.stdin.write(f"{lines}\n")
    process.stdin.close()
    assert process.wait(timeout=240) == 141
    assert process.stderr.read() == ""
    process.stderr.close()


def test_it_runs_as_a_module():
    words = [sys.executable, "-m", "worldloom.cli", "--version"]
    found = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)
    assert found.returncode == 0
    assert found.stdout.startswith("worldloom ")


@pytest.fixture
def pond(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> System:
    """A system that has commands."""
    package = tmp_path / "pond_package"
    package.mkdir()
    (package / "__init__.py").write_text("raise AssertionError('imported too early')\n")
    (package / "cli.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    system = System("pond", "pond_package", "Ducks on a pond.")
    monkeypatch.setattr("worldloom._systems.SYSTEMS", (*SYSTEMS, system))
    return system


def test_a_system_is_listed_without_being_imported(
    pond: System, capsys: pytest.CaptureFixture[str]
):
    assert main(["--help"]) == 0
    assert "pond      Ducks on a pond." in capsys.readouterr().out


def test_a_system_without_commands_is_not_listed(capsys: pytest.CaptureFixture[str]):
    assert not System("void", "no_such_package", "Nothing.").has("cli")
    assert not System("void", "os", "A module, not a package.").has("cli")
    assert main(["void"]) == 2
    assert "unknown command 'void'" in capsys.readouterr().err


POND = """
from dataclasses import dataclass
from worldloom.cli import Command

@dataclass(frozen=True)
class Swim:
    rate: float = 0.5

COMMANDS = (Command("swim", "Swim a round.", Swim, print),)
"""


def test_a_system_has_commands_of_its_own(pond: System, capsys: pytest.CaptureFixture[str]):
    spec = importlib.util.find_spec(pond.package)
    assert spec is not None
    assert spec.origin is not None
    Path(spec.origin).write_text("")
    Path(spec.origin).with_name("cli.py").write_text(POND)
    assert main(["pond", "swim", "--rate", "2"]) == 0
    assert main(["pond", "swim", "rate=3"]) == 0
    assert capsys.readouterr().out == "Swim(rate=2.0)\nSwim(rate=3.0)\n"
    assert main(["pond", "--help"]) == 0
    assert "swim      Swim a round." in capsys.readouterr().out
    assert main(["pond"]) == 2
    assert main(["pond", "swmi"]) == 2
    assert "Did you mean 'worldloom pond swim'?" in capsys.readouterr().err
    assert main(["pond", "swim", "--help"]) == 0
    assert "usage: worldloom pond swim" in capsys.readouterr().out


def test_every_system_that_has_commands_can_be_loaded():
    for system in SYSTEMS:
        if system.has("cli"):
            commands = {c.name: c for c in system.load("cli").COMMANDS}
            assert commands
            assert all(isinstance(command, Command) for command in commands.values())


@pytest.fixture(autouse=True)
def _plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
