"""PNG files from arrays, with nothing but zlib."""

from __future__ import annotations

import struct
import zlib

import numpy as np


def encode_png(pixels: np.ndarray, palette: np.ndarray | None = None) -> bytes:
    """`uint8[height, width, 3]`, or `uint8[height, width]` and its palette, as a PNG file."""
    height, width = pixels.shape[:2]
    colour_type = 2 if palette is None else 3
    rows = pixels.reshape(height, -1)
    filtered = np.zeros((height, rows.shape[1] + 1), np.uint8)
    filtered[:, 1:] = rows
    chunks = [_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour_type, 0, 0, 0))]
    if palette is not None:
        chunks.append(_chunk(b"PLTE", palette.tobytes()))
    chunks.append(_chunk(b"IDAT", zlib.compress(filtered.tobytes(), 9)))
    chunks.append(_chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)
