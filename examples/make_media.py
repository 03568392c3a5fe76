"""Makes the demo's sound clip and picture from formulas, so that both are ours to give away.

Run `python examples/make_media.py` to write examples/data/clip.wav and examples/data/scene.png again.
"""
from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
from PIL import Image

DATA = Path(__file__).parent / "data"
RATE_HZ = 16_000


def pluck(pitch_hz: float, seconds: float, rng: np.random.Generator) -> np.ndarray:
    """A plucked string (Karplus and Strong 1983): noise in a delay line that averages itself."""
    line = rng.uniform(-1, 1, round(RATE_HZ / pitch_hz))
    out = np.empty(round(RATE_HZ * seconds))
    for i in range(len(out)):
        k = i % len(line)
        out[i] = line[k]
        line[k] = 0.498 * (line[k] + line[(k + 1) % len(line)])
    return out


def clip() -> np.ndarray:
    """Four plucked notes with a whistle at 6.5 kHz on top, which the filter takes away."""
    rng = np.random.default_rng(16)
    sound = np.zeros(RATE_HZ * 2)
    for number, pitch in enumerate((196.0, 246.9, 293.7, 392.0)):
        start = number * RATE_HZ // 3
        note = pluck(pitch, 1.0, rng)[: len(sound) - start]
        sound[start : start + len(note)] += note
    time = np.arange(len(sound)) / RATE_HZ
    sound += 0.25 * np.sin(2 * np.pi * 6500 * time)
    return np.round(sound / np.abs(sound).max() * 24_000).astype(np.int16)


def scene(height: int = 180, width: int = 240) -> np.ndarray:
    """Two lit spheres on a chequered floor, one ray a pixel."""
    y, x = np.mgrid[0:height, 0:width]
    ray = np.stack([(x - width / 2) / width, -(y - height / 2) / width, np.ones((height, width))], -1)
    ray /= np.linalg.norm(ray, axis=-1, keepdims=True)
    light = np.array([-0.5, 0.8, -0.4]) / np.linalg.norm([-0.5, 0.8, -0.4])
    shade = np.clip(0.55 + ray[..., 1], 0, 1)
    nearest = np.full((height, width), np.inf)
    down = ray[..., 1] < -1e-3
    depth = np.where(down, -0.6 / np.where(down, ray[..., 1], -1), np.inf)
    floor = ray * np.where(np.isfinite(depth), depth, 0)[..., None]
    squares = (np.floor(floor[..., 0] * 2) + np.floor(floor[..., 2] * 2)) % 2
    shade = np.where(down, 0.25 + 0.5 * squares * np.exp(-depth / 12), shade)
    nearest = np.where(down, depth, nearest)
    for centre, radius in (((-0.45, -0.1, 2.6), 0.5), ((0.5, -0.3, 2.0), 0.3)):
        middle = np.array(centre)
        along = ray @ middle
        inside = along**2 - (middle @ middle - radius**2)
        hit = (inside > 0) & (along - np.sqrt(np.maximum(inside, 0)) < nearest)
        reach = along - np.sqrt(np.maximum(inside, 0))
        normal = (ray * reach[..., None] - middle) / radius
        lit = 0.12 + 0.8 * np.clip(normal @ light, 0, 1)
        shade, nearest = np.where(hit, lit, shade), np.where(hit, reach, nearest)
    return np.round(np.clip(shade, 0, 1) * 255).astype(np.uint8)


def main() -> None:
    DATA.mkdir(exist_ok=True)
    with wave.open(str(DATA / "clip.wav"), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE_HZ)
        out.writeframes(clip().astype("<i2").tobytes())
    Image.fromarray(scene()).save(DATA / "scene.png", optimize=True)


if __name__ == "__main__":
    main()
