"""Writes cases of kernels by Triton into the folder that is the argument; see cases.py.

The ideas come from the first two of Triton's tutorials: an addition of vectors, and a softmax of
rows whose programs load the next rows while they compute. The code is our own.
"""

import sys

import numpy as np
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from cases import Case, Iota


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@triton.jit
def softmax(x, out, x_stride, out_stride, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    j = tl.arange(0, BLOCK)
    inside = j < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        values = tl.load(x + row * x_stride + j, mask=inside, other=-float("inf"))
        powers = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * out_stride + j, powers / tl.sum(powers, axis=0), mask=inside)


def write(folder, kernel, types, constants, warps, grid, args, result, expected, **rest):
    """Writes the case of a kernel whose parameters have these types, and then constants."""
    signature = dict(zip(kernel.arg_names, [*types, *("constexpr" for _ in constants)]))
    # A launch from Python tells the compiler which pointers and numbers are multiples of 16.
    numbers = [0 if kind[0] == "*" else int(argument.removeprefix("i32:")) for kind, argument in zip(types, args)]
    aligned = {(place,): [["tt.divisibility", 16]] for place, number in enumerate(numbers) if number % 16 == 0}
    source = ASTSource(kernel, signature=signature, constexprs=constants, attrs=aligned)
    compiled = triton.compile(source, target=GPUTarget("cuda", 80, 32), options={"num_warps": warps})
    # Two pointers to scratch memory, of which these kernels need none.
    args = [*args, "u64:0", "u64:0"]
    name, made_by = kernel.__name__, f"Triton {triton.__version__}"
    shared = compiled.metadata.shared
    Case(name, compiled.asm["ptx"], made_by, grid, [32 * warps], args, result, expected, shared=shared, **rest).write(
        folder
    )


def main(folder):
    x = Iota((3008,))
    write(folder, vector_add, ["*fp32", "*fp32", "*fp32", "i32"], {"BLOCK": 1024}, 4, [3],
          [x, x, np.zeros(3008, np.float32), "i32:3008"], 2, x.values() + x.values(),
          expect=["load.sectors <= 1.0 * ideal", "store.sectors <= 1.0 * ideal"])

    # 4 programs of up to 3 rows each.
    rows, columns = 11, 397
    x = np.random.default_rng(2).standard_normal((rows, columns), np.float32)
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    out = np.zeros((rows, columns), np.float32)
    args = [x, out, *(f"i32:{n}" for n in (columns, columns, rows, columns))]
    write(folder, softmax, ["*fp32", "*fp32", *["i32"] * 4], {"BLOCK": 512, "STAGES": 4}, 4, [4], args, 1,
          powers / powers.sum(axis=1, keepdims=True), tolerance=1e-5, expect=["load.sectors <= 1.25 * ideal"])


main(sys.argv[1])
