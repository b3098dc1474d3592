"""The same arithmetic in NumPy, vectorised over particles, or with SciPy's interpolator."""

from __future__ import annotations

import numpy as np
import workload


def setup(*, steps: int, folder: str, name: str, scipy: bool):
    """One call carries all particles through `steps` steps and keeps every one."""
    axis, times, data = workload.grid()
    seeds = workload.seeds()
    velocity = _by_scipy(axis, times, data) if scipy else _by_hand(times, data)

    def run():
        x, h = seeds.copy(), np.float32(workload.STEP)
        kept = np.empty((steps + 1, *x.shape), np.float32)
        kept[0] = x
        for n in range(steps):
            t = n * workload.STEP
            k1 = velocity(x, t)
            k2 = velocity(x + h / 2 * k1, t + workload.STEP / 2)
            k3 = velocity(x + h / 2 * k2, t + workload.STEP / 2)
            k4 = velocity(x + h * k3, t + workload.STEP)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            x = 1 - np.abs(np.mod(x, 2) - 1)
            kept[n + 1] = x
        return kept

    workload.leave(folder, name, run()[-1])
    return run


def _by_hand(times, data):
    """Trilinear in space, linear in time."""
    n = data.shape[1]
    flat = data.reshape(len(data), -1, 3)

    def velocity(x, t):
        k = min(int(np.searchsorted(times, t, side="right")) - 1, len(times) - 2)
        w = np.float32((t - times[k]) / (times[k + 1] - times[k]))
        f = np.clip(x * np.float32(n - 1), 0, n - 1)
        i = np.minimum(f.astype(np.int32), n - 2)
        s = f - i
        base = ((i[:, 0] * n + i[:, 1]) * n) + i[:, 2]
        total = np.zeros_like(x)
        for corner in range(8):
            a, b, c = corner >> 2, (corner >> 1) & 1, corner & 1
            part = (s[:, 0] if a else 1 - s[:, 0]) * (s[:, 1] if b else 1 - s[:, 1])
            part = part * (s[:, 2] if c else 1 - s[:, 2])
            node = base + (a * n + b) * n + c
            low, high = flat[k][node], flat[k + 1][node]
            total += part[:, None] * (low + w * (high - low))
        return total

    return velocity


def _by_scipy(axis, times, data):
    from scipy.interpolate import RegularGridInterpolator

    grid = RegularGridInterpolator((times, axis, axis, axis), data)

    def velocity(x, t):
        places = np.empty((len(x), 4), np.float32)
        places[:, 0] = min(t, times[-1])
        places[:, 1:] = np.clip(x, 0, 1)
        return grid(places).astype(np.float32)

    return velocity
