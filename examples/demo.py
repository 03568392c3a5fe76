"""The whole path on real data: source -> graph -> pipeline -> Verilog -> simulation -> bitstream -> report.

A 16-tap filter runs over a sound clip and an edge detector over a picture. Each design is built for an ECP5,
its simulated circuit, its machine code and its WebAssembly module are compared bit for bit with the reference
on every sample and every pixel, and the results are written where you can listen to them and look at them. At
the end `kera verify --targets all` holds every target against the reference, kernels for GPUs among them.

    python examples/demo.py [--wav CLIP.wav] [--png PICTURE.png] [-o DIR] [--no-bitstream]
"""
from __future__ import annotations

import argparse
import shlex
import sys
import time
import wave
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from rich.console import Console

import kera_hw
from kera_hw.cli import main as cli
from kera_hw.cli.hardware_commands import figures_table
from kera_hw.driver.build import BuildResult, build
from kera_hw.driver.options import TargetOptions
from kera_hw.driver.session import find_export, load_program
from kera_hw.support import Diagnostic, KeraError, render_diagnostics

HERE = Path(__file__).parent
STREAM_ITEMS = 500
"""Of the clip for every target: the interpreter of kernels takes items of a stream one after another."""
console = Console(highlight=False, soft_wrap=True)


def main(arguments: list[str] | None = None) -> int:
    """Runs the demo; 0 when every bit agreed, 1 otherwise, 2 for an unusable file, 3 for a missing tool."""
    options = parse(arguments)
    try:
        samples, rate_hz = read_wav(options.wav)
        picture = read_picture(options.png)
    except (OSError, EOFError, wave.Error, ValueError) as fault:
        print(f"demo: {fault}", file=sys.stderr)
        return 2
    try:
        filtered, sound_ok = run("fir.kera", "fir", {"x": samples}, options)
        edges, picture_ok = run("sobel_window.kera", "sobel_window", {"p": windows(picture)}, options)
        write_results(filtered, edges, picture, rate_hz, options)
        console.rule("every target")
        everywhere = [
            verify("fir.kera", "fir", {"x": samples[:STREAM_ITEMS]}, options),
            verify("sobel_window.kera", "sobel_window", {"p": windows(picture)}, options),
        ]
    except KeraError as fault:
        print(render_diagnostics(fault.diagnostics), file=sys.stderr)
        return 3 if any(item.code == "K0950" for item in fault.diagnostics) else 1
    console.rule()
    console.print(
        f"Listen to {options.out}/filtered.wav (before: {options.wav}),\n"
        f"look at {options.out}/before_after.png, and open\n"
        f"{options.out}/fir/report.html and {options.out}/sobel_window/report.html in a browser."
    )
    return 0 if sound_ok and picture_ok and all(everywhere) else 1


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--wav", type=Path, default=HERE / "data" / "clip.wav", help="a 16-bit WAV file")
    parser.add_argument("--png", type=Path, default=HERE / "data" / "scene.png", help="a picture")
    parser.add_argument("-o", "--out", type=Path, default=Path("build/demo"), help="where results go")
    parser.add_argument("--target", default="ecp5-85k", help="the device")
    parser.add_argument("--no-bitstream", action="store_true", help="stop at Verilog")
    return parser.parse_args(arguments)


def run(program: str, name: str, inputs: dict[str, Any], options: argparse.Namespace) -> tuple[Any, bool]:
    """Builds one function, simulates it over the data and compares with the reference."""
    console.rule(f"{name} ({program})")
    path = HERE / program
    built = build_one(path, name, options)
    show(built)
    source = kera_hw.load(path)
    expected = source.function(name).batch(**inputs)
    start = time.perf_counter()
    with console.status("simulating"):
        circuit = source.function(name, target="rtl", device=options.target)
        actual = circuit.batch(**inputs)
    seconds = time.perf_counter() - start
    differing = int(np.count_nonzero(expected != actual))
    verdict = "[green]0 differing bits[/]" if differing == 0 else f"[red]{differing} items differ[/]"
    console.print(
        f"{len(actual):,} items through the simulated circuit, at full rate and under random stalls,\n"
        f"in {seconds:.1f} s: {verdict} against the reference, every cycle as predicted."
    )
    equal = [in_software(source, name, target, inputs, expected) for target in ("cpu", "wasm")]
    console.print(source.fingerprint)
    return actual, differing == 0 and all(equal)


def in_software(
    source: kera_hw.Program, name: str, target: str, inputs: dict[str, Any], expected: Any
) -> bool:
    """Runs the function on another target and compares. A processor that it is not for is no fault."""
    try:
        function = source.function(name, target=target)
    except KeraError as fault:
        if fault.diagnostics[0].code != "K0706":
            raise
        console.print(fault.diagnostics[0].message)
        return True
    start = time.perf_counter()
    actual = function.batch(**inputs)
    seconds = time.perf_counter() - start
    differing = int(np.count_nonzero(expected != actual))
    verdict = "[green]0 differing bits[/]" if differing == 0 else f"[red]{differing} items differ[/]"
    console.print(f"{len(actual):,} items on {target} in {1000 * seconds:.1f} ms: {verdict}.")
    return differing == 0


def verify(program: str, name: str, inputs: dict[str, Any], options: argparse.Namespace) -> bool:
    """`kera verify --targets all` on the data; its command line, which can be repeated, and its table."""
    command = ["kera", "verify", str(HERE / program), "--fn", name, "--targets", "all"]
    command += ["--device", options.target, "--vectors", "100"]
    for parameter, value in inputs.items():
        items = options.out / f"{name}.{parameter}.npy"
        np.save(items, value)
        command += ["-i", f"{parameter}={items}"]
    console.print(f"$ {shlex.join(command)}")
    return cli.main(command[1:]) == 0


def write_results(
    filtered: np.ndarray, edges: np.ndarray, picture: np.ndarray, rate_hz: int, options: argparse.Namespace
) -> None:
    """The sound and the pictures."""
    write_wav(options.out / "filtered.wav", filtered, rate_hz)
    image = edges.reshape(picture.shape[0] - 2, -1)
    Image.fromarray(image).save(options.out / "edges.png")
    side_by_side(picture, image).save(options.out / "before_after.png")


def build_one(path: Path, name: str, options: argparse.Namespace) -> BuildResult:
    """`kera build` of one function."""
    loaded = load_program(path)
    if loaded.graph is None:
        raise KeraError(loaded.diagnostics)
    export = find_export(loaded, name)
    assert not isinstance(export, Diagnostic)
    request = TargetOptions(device=options.target)
    with console.status("building") as status:
        return build(
            loaded, loaded.graph, export, request, options.out / name, options.no_bitstream, 1,
            lambda step: status.update(f"{name}: {step}"),
        )


def show(built: BuildResult) -> None:
    """Figures and files of a build."""
    plan = built.plan
    latency, interval = plan["latency_cycles"], plan["initiation_interval"]
    console.print(f"planned for {plan['clock_mhz']:g} MHz: latency {latency}, interval {interval} cycle(s)")
    console.print(figures_table(plan))
    console.print(f"{built.directory}: {', '.join(built.files)}")


def read_wav(path: Path) -> tuple[np.ndarray, int]:
    """The first channel of a 16-bit WAV file, and its rate in Hz."""
    with wave.open(str(path)) as clip:
        if clip.getsampwidth() != 2:
            raise ValueError(f"{path} does not hold 16-bit samples")
        data = np.frombuffer(clip.readframes(clip.getnframes()), "<i2").reshape(-1, clip.getnchannels())
        if len(data) == 0:
            raise ValueError(f"{path} holds no samples")
        return np.ascontiguousarray(data[:, 0]), clip.getframerate()


def write_wav(path: Path, sums: np.ndarray, rate_hz: int) -> None:
    """The filter's sums, scaled by its gain of 2512 back to 16 bits."""
    samples = np.clip(np.round(sums / 2512), -(2**15), 2**15 - 1).astype("<i2")
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate_hz)
        out.writeframes(samples.tobytes())


def read_picture(path: Path) -> np.ndarray:
    """The picture in grey, as uint8; at least 3 by 3 pixels."""
    with Image.open(path) as image:
        grey = np.asarray(image.convert("L"))
    if min(grey.shape) < 3:
        raise ValueError(f"{path} is smaller than 3 by 3 pixels")
    return grey


def windows(picture: np.ndarray) -> np.ndarray:
    """All 3 by 3 windows in row-major order of their centres: shape (pixels, 3, 3)."""
    return np.lib.stride_tricks.sliding_window_view(picture, (3, 3)).reshape(-1, 3, 3)


def side_by_side(picture: np.ndarray, edges: np.ndarray) -> Image.Image:
    """The picture without its border, and its edges to the right."""
    return Image.fromarray(np.hstack([picture[1:-1, 1:-1], edges]))


if __name__ == "__main__":
    sys.exit(main())
