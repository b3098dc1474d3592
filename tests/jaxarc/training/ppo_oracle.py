"""Proximal policy optimisation written a second time, in NumPy, with loops."""

from __future__ import annotations

import numpy as np


def advantages(reward, value, last_value, done, discount, decay):
    steps, worlds = reward.shape
    found = np.zeros((steps, worlds))
    for w in range(worlds):
        for t in range(steps):
            weight, total = 1.0, 0.0
            for k in range(t, steps):
                ahead = last_value[w] if k == steps - 1 else value[k + 1, w]
                total += weight * (
                    reward[k, w] + (0 if done[k, w] else discount * ahead) - value[k, w]
                )
                if done[k, w]:
                    break
                weight *= discount * decay
            found[t, w] = total
    return found


def log_softmax(x):
    x = x - x.max()
    return x - np.log(np.exp(x).sum())


def decide(p, planes, choices):
    """Log-probability of choices, entropy and value for one observation, `planes[k, row, col]`."""
    count, height, width = planes.shape
    embed = p["embed"].reshape(count, 11, -1)
    x = np.zeros((height, width, embed.shape[-1]))
    for r in range(height):
        for c in range(width):
            x[r, c] = p["rows"][r, 0] + p["columns"][0, c]
            for k in range(count):
                x[r, c] += embed[k, planes[k, r, c] + 1]
    for kernel, context in zip(p["kernels"], p["contexts"], strict=True):
        y = np.zeros_like(x)
        for r in range(height):
            for c in range(width):
                total = x.mean(axis=(0, 1)) @ context
                for i in (-1, 0, 1):
                    for j in (-1, 0, 1):
                        if 0 <= r + i < height and 0 <= c + j < width:
                            total = total + x[r + i, c + j] @ kernel[i + 1, j + 1]
                y[r, c] = np.maximum(total, 0)
        x = x + y
    cells = x.reshape(height * width, -1)
    told = np.maximum(np.concatenate([cells.mean(axis=0), cells.max(axis=0)]) @ p["summary"], 0)
    wish = p["wishes"][choices[0]]
    logits = [told @ p["operation"], cells @ wish]
    if "second" in p:
        logits.append(cells @ (wish + cells[choices[1]] @ p["second"]))
    logs = [log_softmax(part) for part in logits]
    probability = sum(log[choice] for log, choice in zip(logs, choices, strict=True))
    entropy = -sum((np.exp(log) * log).sum() for log in logs)
    return probability, entropy, told @ p["value"]


def loss(p, planes, choices, old, advantage, returns, config):
    """The loss and its parts, over a batch."""
    n = len(planes)
    policy = value = entropy = divergence = clipped = 0.0
    for i in range(n):
        new, spread, worth = decide(p, planes[i], choices[i])
        ratio = np.exp(new - old[i])
        low, high = 1 - config.clip_ratio, 1 + config.clip_ratio
        held = min(max(ratio, low), high)
        policy -= min(ratio * advantage[i], held * advantage[i]) / n
        value += 0.5 * (worth - returns[i]) ** 2 / n
        entropy += spread / n
        divergence += (ratio - 1 - np.log(ratio)) / n
        clipped += (not low <= ratio <= high) / n
    total = policy + config.value_weight * value - config.entropy_weight * entropy
    return np.array([total, policy, value, entropy, divergence, clipped])


def adam(parameters, gradients, rate, max_norm):
    """Adam on a list of gradients, one a step, each a dict; `eps` as in the trainer."""
    first = {k: np.zeros_like(v) for k, v in parameters.items()}
    second = {k: np.zeros_like(v) for k, v in parameters.items()}
    for t, take in enumerate(gradients, start=1):
        gradient = take(parameters)
        norm = np.sqrt(sum((g**2).sum() for g in gradient.values()))
        scale = min(1.0, max_norm / norm)
        for k, g in gradient.items():
            first[k] = 0.9 * first[k] + 0.1 * scale * g
            second[k] = 0.999 * second[k] + 0.001 * (scale * g) ** 2
            step = first[k] / (1 - 0.9**t) / (np.sqrt(second[k] / (1 - 0.999**t)) + 1e-5)
            parameters[k] = parameters[k] - rate * step
    return parameters
