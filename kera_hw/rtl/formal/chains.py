"""Carry cells that feed each other, joined into one cell a chain, so that a sum stays a sum."""
from __future__ import annotations

from kera_hw.rtl.formal.cells import NotModelled
from kera_hw.rtl.formal.circuit import Bit, Cell, Circuit

_CARRY = "CCU2C"


def joined_chains(circuit: Circuit) -> tuple[Cell, ...]:
    """The cells with every maximal chain of CCU2C as one cell of type ``carry chain``."""
    carry = [cell for cell in circuit.cells if cell.kind == _CARRY]
    following = {cell.inputs["CIN"][0]: cell for cell in carry}
    fed = {cell.outputs["COUT"][0] for cell in carry if cell.outputs.get("COUT")}
    chains: list[Cell] = []
    for cell in carry:
        if cell.inputs["CIN"][0] in fed:
            continue
        chain = [cell]
        while True:
            after = following.get(chain[-1].outputs["COUT"][0]) if chain[-1].outputs.get("COUT") else None
            if after is None:
                break
            chain.append(after)
        chains.append(_joined(chain))
    return (*(cell for cell in circuit.cells if cell.kind != _CARRY), *chains)


def single_carries(circuit: Circuit) -> tuple[Cell, ...]:
    """The cells with every CCU2C as a chain of its own: slower to prove, but free of apparent loops."""
    return tuple(_joined([cell]) if cell.kind == _CARRY else cell for cell in circuit.cells)


def _joined(chain: list[Cell]) -> Cell:
    params = {"SLICES": bin(len(chain))[2:]}
    inputs: dict[str, list[Bit]] = {name: [] for name in "ABCD"}
    sums: list[Bit] = []
    carries: list[Bit] = []
    for k, cell in enumerate(chain):
        for half in range(2):
            if cell.word(f"INJECT1_{half}", "YES") != "NO":
                raise NotModelled(cell, "an injected carry")
            params[f"INIT{2 * k + half}"] = cell.params.get(f"INIT{half}", "0")
            for name in "ABCD":
                inputs[name].append(cell.inputs[f"{name}{half}"][0])
            sums += cell.outputs.get(f"S{half}") or ("unused",)
        carries += cell.outputs.get("COUT") or ("unused",)
    pins = {name: tuple(bits) for name, bits in inputs.items()}
    pins["CIN"] = chain[0].inputs["CIN"]
    return Cell(chain[0].name, "carry chain", params, pins, {"S": tuple(sums), "COUT": tuple(carries)})
