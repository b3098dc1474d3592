"""Small files of every kind that a command reads, and ways to damage them."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

MUTATIONS: dict[str, Callable[[bytearray, random.Random], bytearray]] = {}


def _mutation(change: Callable[[bytearray, random.Random], bytearray]):
    MUTATIONS[change.__name__] = change
    return change


@_mutation
def flip(data: bytearray, chance: random.Random) -> bytearray:
    """A few bytes with another value."""
    for _ in range(chance.choice((1, 1, 2, 4))):
        data[chance.randrange(len(data))] ^= chance.randrange(1, 256)
    return data


@_mutation
def truncate(data: bytearray, chance: random.Random) -> bytearray:
    """The end is lost."""
    return data[: chance.randrange(len(data))]


@_mutation
def insert(data: bytearray, chance: random.Random) -> bytearray:
    """Some bytes too many."""
    at = chance.randrange(len(data) + 1)
    return data[:at] + bytearray(chance.randbytes(chance.randrange(1, 9))) + data[at:]


@_mutation
def swap(data: bytearray, chance: random.Random) -> bytearray:
    """Two bytes in each other's place."""
    i, j = (chance.randrange(len(data)) for _ in range(2))
    data[i], data[j] = data[j], data[i]
    return data


@_mutation
def zero(data: bytearray, chance: random.Random) -> bytearray:
    """A run of zeros."""
    at = chance.randrange(len(data))
    size = min(chance.choice((2, 8, 64, 512)), len(data) - at)
    data[at : at + size] = bytes(size)
    return data


@_mutation
def extreme(data: bytearray, chance: random.Random) -> bytearray:
    """A number in place of another: the largest, minus one, or a digit more."""
    digits = [i for i, byte in enumerate(data) if 48 <= byte < 58]
    if digits and chance.random() < 0.5:
        at = chance.choice(digits)
        return data[:at] + chance.choice((b"-", b"9", b"99999999", b".", b"e9", b"")) + data[at:]
    at = chance.randrange(len(data))
    for i in range(at, min(at + chance.choice((1, 4, 8)), len(data))):
        data[i] = chance.choice((0xFF, 0x7F, 0x80))
    return data


def damaged(data: bytes, seed: int) -> tuple[str, bytes]:
    """A mutant of `data`, and which mutation made it; half of them near the beginning."""
    chance = random.Random(seed)
    name = chance.choice(list(MUTATIONS))
    changed = bytearray(data)
    if chance.random() < 0.5 and len(data) > 512:
        head = MUTATIONS[name](changed[:512], chance)
        return name, bytes(head + changed[512:])
    return name, bytes(MUTATIONS[name](changed, chance))


def damage(path: Path, place: Path, seed: int) -> str:
    """Put a mutant of a file or of a folder at `place`; say what was done to what."""
    shutil.rmtree(place, ignore_errors=True)
    place.unlink(missing_ok=True)
    if path.is_file():
        name, content = damaged(path.read_bytes(), seed)
        place.write_bytes(content)
        return name
    shutil.copytree(path, place)
    files = sorted(file for file in place.rglob("*") if file.is_file() and file.stat().st_size)
    chosen = random.Random(seed).choice(files)
    name, content = damaged(chosen.read_bytes(), seed)
    chosen.write_bytes(content)
    return f"{name} of {chosen.relative_to(place)}"
