"""Modules of PTX."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kera_hw.cpu_gpu.gpu.kernels import Kernel, Language
from kera_hw.cpu_gpu.gpu.writer import Writer
from kera_hw.cpu_gpu.ptx.writer import PtxWriter
from kera_hw.schedule.software.grids import NVIDIA
from kera_hw.schedule.software.layout import ALIGNMENT_BYTES

VERSION, TARGET = "6.5", "sm_75"
"""The least that the text asks for; every later GPU takes it too."""


class Ptx(Language[str]):
    """Kernels for NVIDIA's GPUs, whatever their year."""

    threads = NVIDIA

    def writer(self, name: str, parameters: Sequence[str]) -> PtxWriter:
        return PtxWriter(parameters)

    def finished(self, writer: Writer[str], kernel: Kernel) -> tuple[list[str], Kernel]:
        assert isinstance(writer, PtxWriter)
        writer.code.op("ret")
        params = ",\n".join(f"\t.param .u64 {one}" for one in writer.parameters)
        declared = [f"\t{line}" for line in (*writer.code.registers(), *writer.arrays)]
        text = [
            "", f".visible .entry {kernel.name}(", params, ")", f".reqntid {kernel.threads}, 1, 1", "{",
            *declared, *writer.code.lines, "}",
        ]
        return text, replace(kernel, instructions=writer.code.instructions)

    def variable(self, name: str, size_bytes: int, data: bytes) -> str:
        initial = f" = {{{', '.join(map(str, data))}}}" if data else ""
        return f".global .align {ALIGNMENT_BYTES} .b8 {name}[{size_bytes}]{initial};"

    def module(
        self, title: str, variables: Sequence[str], kernels: Sequence[tuple[list[str], Kernel]]
    ) -> str:
        head = [f"// {title}", f".version {VERSION}", f".target {TARGET}", ".address_size 64", ""]
        written = [line for text, _ in kernels for line in text]
        return "\n".join([*head, *variables, *written]) + "\n"
