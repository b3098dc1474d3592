from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from worldloom import mesh
from worldloom.mesh import _launch

FOREVER = "import time; time.sleep(600)"


def python(code: str) -> list[str]:
    return [sys.executable, "-S", "-c", code]


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def until(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def test_lines_carry_the_number_of_their_process_and_keep_their_stream(capfd):
    code = (
        "import os, sys; i = os.environ['WORLDLOOM_PROCESS']\n"
        "print('out', i); print('more', i); print('err', i, file=sys.stderr); print('tail', end='')"
    )
    assert mesh.launch(python(code), processes=2) == 0
    out, err = capfd.readouterr()
    for i in "01":
        mine = [line for line in out.splitlines() if line.startswith(f"[{i}]")]
        assert mine == [f"[{i}] out {i}", f"[{i}] more {i}", f"[{i}] tail"]
    assert sorted(err.splitlines()) == ["[0] err 0", "[1] err 1"]


def test_the_processes_get_all_they_need_to_join(capfd):
    names = ["COORDINATOR", "PROCESSES", "PROCESS", "DEVICES_PER_PROCESS"]
    code = f"import os; print(*[os.environ['WORLDLOOM_' + n] for n in {names}])"
    assert mesh.launch(python(code), processes=3, devices_per_process=4) == 0
    lines = sorted(capfd.readouterr().out.splitlines())
    addresses = {line.split()[1] for line in lines}
    assert len(addresses) == 1
    assert addresses.pop().startswith("127.0.0.1:")
    assert [line.split()[2:] for line in lines] == [["3", str(i), "4"] for i in range(3)]


def test_a_failed_process_ends_the_others_and_is_named(capfd, tmp_path):
    code = (
        "import os, sys, time\n"
        f"open(r'{tmp_path}/' + os.environ['WORLDLOOM_PROCESS'], 'w').write(str(os.getpid()))\n"
        f"while len(os.listdir(r'{tmp_path}')) < 3: time.sleep(0.01)\n"
        "sys.exit(7) if os.environ['WORLDLOOM_PROCESS'] == '1' else time.sleep(600)"
    )
    assert mesh.launch(python(code), processes=3) == 7
    err = capfd.readouterr().err
    assert "process 1 of 3 ended with exit code 7" in err
    assert "The other 2 are ended." in err
    assert "resume from the last one, with the same or another number of processes" in err
    for i in range(3):
        assert gone(int((tmp_path / str(i)).read_text() or 0))


def test_a_killed_process_is_named_with_its_signal(capfd):
    code = (
        "import os, signal, time\n"
        "if os.environ['WORLDLOOM_PROCESS'] == '0': os.kill(os.getpid(), signal.SIGKILL)\n"
        "time.sleep(600)"
    )
    assert mesh.launch(python(code), processes=2) == 128 + signal.SIGKILL
    assert "process 0 of 2 was killed by SIGKILL (signal 9)" in capfd.readouterr().err


def test_a_process_that_will_not_end_is_killed(capfd):
    code = (
        "import os, signal, sys, time\n"
        "if os.environ['WORLDLOOM_PROCESS'] == '0':\n"
        "    time.sleep(0.5); sys.exit(3)\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('not me'))\n"
        "while True: time.sleep(600)"
    )
    assert mesh.launch(python(code), processes=2, grace=0.5) == 3
    assert "[1] not me" in capfd.readouterr().out


def test_a_time_out_ends_all(capfd):
    assert mesh.launch(python(FOREVER), processes=2, timeout=0.5) == 124
    assert "time-out after 0.5 s" in capfd.readouterr().err


def test_what_a_process_leaves_behind_is_ended(capfd):
    code = (
        "import subprocess, sys\n"
        f"print(subprocess.Popen([sys.executable, '-S', '-c', {FOREVER!r}]).pid)"
    )
    assert mesh.launch(python(code), processes=1) == 0
    child = int(capfd.readouterr().out.split()[1])
    until(lambda: gone(child))


def test_an_ending_that_is_cut_short_leaves_no_orphans(capfd, monkeypatch):
    def cut_short(workers):
        raise KeyboardInterrupt

    monkeypatch.setattr(_launch._Workers, "_end_all", cut_short)
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    with pytest.raises(KeyboardInterrupt):
        mesh.launch(python(code), processes=2, timeout=2)
    workers = [int(line.split()[1]) for line in capfd.readouterr().out.splitlines()]
    assert len(workers) == 2
    until(lambda: all(gone(pid) for pid in workers))


def start_launcher(code: str, processes: int = 2) -> subprocess.Popen[str]:
    """A launcher in a process of its own."""
    launcher = (
        "import sys; from worldloom import mesh\n"
        f"sys.exit(mesh.launch({python(code)!r}, processes={processes}))"
    )
    return subprocess.Popen(
        [sys.executable, "-c", launcher],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def pids(launcher: subprocess.Popen[str], count: int = 2) -> list[int]:
    assert launcher.stdout is not None
    return [int(launcher.stdout.readline().split()[1]) for _ in range(count)]


CLEAN = (
    "import os, signal, sys, time\n"
    "def end(number, _): print('cleaned up after', number); sys.exit(0)\n"
    "signal.signal(signal.SIGTERM, end)\n"
    "print(os.getpid()); time.sleep(600)"
)


def test_a_signal_is_forwarded_and_shows_in_the_exit_code():
    launcher = start_launcher(CLEAN)
    workers = pids(launcher)
    launcher.send_signal(signal.SIGTERM)
    out, err = launcher.communicate(timeout=60)
    assert launcher.returncode == 128 + signal.SIGTERM, err
    assert sorted(out.splitlines()) == ["[0] cleaned up after 15", "[1] cleaned up after 15"]
    assert all(gone(pid) for pid in workers)


def test_a_second_signal_kills():
    code = (
        "import os, signal, time; signal.signal(2, lambda *_: print('- not yet'))\n"
        "print(os.getpid())\n"
        "while True: time.sleep(600)"
    )
    launcher = start_launcher(code)
    workers = pids(launcher)
    launcher.send_signal(signal.SIGINT)
    assert launcher.stdout is not None
    assert [launcher.stdout.readline()[3:] for _ in workers] == [" - not yet\n"] * 2
    assert not any(gone(pid) for pid in workers)
    launcher.send_signal(signal.SIGINT)
    _, err = launcher.communicate(timeout=60)
    assert launcher.returncode == 130
    assert "SIGINT again: all processes are killed" in err
    assert all(gone(pid) for pid in workers)


def test_output_that_nobody_reads_ends_all():
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as stream, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        code = "while True: print('x' * 1000)"
        assert mesh.launch(python(code), processes=2) == 128 + signal.SIGPIPE
        with pytest.raises(BrokenPipeError):
            stream.close()


def test_a_launcher_that_is_killed_leaves_no_orphans():
    launcher = start_launcher("import os, time; print(os.getpid()); time.sleep(600)")
    workers = pids(launcher)
    children = psutil.Process(launcher.pid).children(recursive=True)
    assert len(children) == 3
    os.kill(launcher.pid, signal.SIGKILL)
    launcher.communicate(timeout=60)
    until(lambda: all(gone(pid) for pid in workers))
    until(lambda: all(gone(child.pid) for child in children))


@pytest.mark.parametrize(
    ("command", "options", "words"),
    [
        ([], {"processes": 1}, "command is empty"),
        (["no-such-program"], {"processes": 1}, "'no-such-program'.* does not start with"),
        (["true"], {"processes": 0}, "processes=0"),
        (["true"], {"processes": 1, "devices_per_process": 0}, "devices_per_process=0"),
    ],
)
def test_what_cannot_be_launched_is_refused(command, options, words):
    with pytest.raises(mesh.LaunchError, match=words):
        mesh.launch(command, **options)
