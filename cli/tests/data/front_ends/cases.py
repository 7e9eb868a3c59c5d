"""Cases of kernels that other compilers make: what `warpstride check` takes.

A case is three files: the PTX, what the result should be by NumPy, and a .toml file that names both;
inputs that are not 0, 1, 2 ... are files too. To make them anew, remove them, run `scripts/tools python`, and then run
`numba_kernels.py` and `triton_kernels.py` by `target/tools/python/bin/python`, each with this folder as its argument.
"""

import json
import os
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


class Iota:
    """An argument 0, 1, 2 ... in float32."""

    def __init__(self, shape):
        self.shape = shape
        self.size = int(np.prod(shape))

    def values(self):
        return np.arange(self.size, dtype=np.float32).reshape(self.shape)


@dataclass
class Case:
    name: str
    ptx: str
    made_by: str
    grid: list
    block: list
    # Arguments in the notation of run-ptx, or arrays.
    args: list
    # The position of the result among the arguments.
    result: int
    expected: np.ndarray
    shared: int = 0
    tolerance: float = 0
    expect: list = field(default_factory=list)

    def write(self, folder):
        folder = Path(folder)
        # Neither folders of this machine nor the debugger's sections belong to the case.
        ptx = self.ptx.partition("\n\t.section")[0]
        for place in (HERE, sysconfig.get_path("purelib")):
            ptx = ptx.replace(f"{place}/", "")
        ptx = ptx.strip("\0\n")
        (folder / f"{self.name}.ptx").write_text(f"// Made by {self.made_by}.\n{ptx}\n")
        args = [self.argument(folder, position) for position in range(len(self.args))]
        expected = self.save(folder, "expected", self.expected.astype(np.float32))
        tolerance = f", tolerance = {self.tolerance}" if self.tolerance else ""
        lines = [
            f"# Made by {self.made_by}.",
            f'kernel = "{self.name}.ptx"',
            f"grid = {self.grid}",
            f"block = {self.block}",
            *([f"shared = {self.shared}"] if self.shared else []),
            "args = [",
            *(f"    {json.dumps(argument)}," for argument in args),
            "]",
            f'result = {{ arg = {self.result}, file = "{expected}"{tolerance} }}',
            'checks = "all"',
            f"expect = {json.dumps(self.expect)}",
        ]
        (folder / f"{self.name}.toml").write_text("\n".join(lines) + "\n")

    def argument(self, folder, position):
        argument = self.args[position]
        if isinstance(argument, str):
            return argument
        if isinstance(argument, Iota):
            return f"f32[{argument.size}]=iota"
        if not argument.any():
            return f"f32[{argument.size}]=zeros"
        return "npy:" + self.save(folder, f"arg{position}", argument)

    def save(self, folder, what, array):
        name = f"{self.name}-{what}.npy"
        np.save(folder / name, array)
        return name
