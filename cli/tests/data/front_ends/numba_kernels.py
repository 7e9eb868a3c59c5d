"""Writes cases of kernels by Numba into the folder that is the argument; see cases.py.

The ideas come from the CUDA chapter of Numba's documentation (a product of matrices by tiles in
shared memory) and from Sasha Rush's GPU-Puzzles (broadcast, pooling, dot product, convolution in one
dimension, prefix sum). The code is our own.
"""

import sys
from importlib.metadata import version

import numpy as np
from numba import cuda, float32

from cases import Case, Iota


VECTOR, MATRIX = float32[::1], float32[:, ::1]
TILE, BLOCK, WEIGHTS = 16, 64, 8
# Numba takes constants as extents, and no sums.
POOLED, CONVOLVED = BLOCK + 2, BLOCK + WEIGHTS


def matmul(a, b, out):
    """out = a @ b, of any extents, by tiles in shared memory."""
    left = cuda.shared.array((TILE, TILE), float32)
    right = cuda.shared.array((TILE, TILE), float32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for first in range(0, a.shape[1], TILE):
        left[y, x] = a[row, first + x] if row < a.shape[0] and first + x < a.shape[1] else 0
        right[y, x] = b[first + y, column] if first + y < b.shape[0] and column < b.shape[1] else 0
        cuda.syncthreads()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    if row < out.shape[0] and column < out.shape[1]:
        out[row, column] = total


def broadcast(out, column, row):
    """out = column + row, of a column and a row."""
    j, i = cuda.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = column[i, 0] + row[0, j]


def pool(out, a):
    """The sum of each element and the two before it."""
    tile = cuda.shared.array(POOLED, float32)
    i, own = cuda.grid(1), cuda.threadIdx.x
    tile[own + 2] = a[i] if i < a.size else 0
    if own < 2:
        tile[own] = a[i - 2] if i >= 2 else 0
    cuda.syncthreads()
    if i < out.size:
        out[i] = tile[own] + tile[own + 1] + tile[own + 2]


def dot(out, a, b):
    """The sum of products, by a tree in shared memory."""
    tile = cuda.shared.array(BLOCK, float32)
    i, own = cuda.grid(1), cuda.threadIdx.x
    tile[own] = a[i] * b[i] if i < a.size else 0
    step = BLOCK // 2
    while step > 0:
        cuda.syncthreads()
        if own < step:
            tile[own] += tile[own + step]
        step //= 2
    if own == 0:
        cuda.atomic.add(out, 0, tile[0])


def convolve(out, a, kernel):
    """out[i] = the sum of a[i + j] * kernel[j], as far as a goes."""
    tile = cuda.shared.array(CONVOLVED, float32)
    weights = cuda.shared.array(WEIGHTS, float32)
    i, own = cuda.grid(1), cuda.threadIdx.x
    tile[own] = a[i] if i < a.size else 0
    if own < WEIGHTS:
        tile[own + BLOCK] = a[i + BLOCK] if i + BLOCK < a.size else 0
        weights[own] = kernel[own] if own < kernel.size else 0
    cuda.syncthreads()
    total = float32(0)
    for j in range(WEIGHTS):
        total += tile[own + j] * weights[j]
    if i < out.size:
        out[i] = total


def scan(out, a):
    """The sum of the elements of its block up to each one."""
    tile = cuda.shared.array(BLOCK, float32)
    i, own = cuda.grid(1), cuda.threadIdx.x
    tile[own] = a[i] if i < a.size else 0
    cuda.syncthreads()
    step = 1
    while step < BLOCK:
        value = tile[own - step] if own >= step else float32(0)
        cuda.syncthreads()
        tile[own] += value
        cuda.syncthreads()
        step *= 2
    if i < out.size:
        out[i] = tile[own]


def array(values):
    """The parameters that Numba makes of an array. Kernels use neither its owner nor its parent."""
    owner = ["u64:0", "u64:0"]
    strides = np.empty(values.shape, np.float32).strides
    return [*owner, f"i64:{values.size}", "i64:4", values, *(f"i64:{n}" for n in (*values.shape, *strides))]


def write(folder, kernel, grid, block, arrays, expected, **rest):
    """Writes the case of a kernel whose parameters are arrays, of which `arrays[result]` is the result."""
    types = tuple(VECTOR if len(values.shape) == 1 else MATRIX for values in arrays)
    ptx, _ = cuda.compile_ptx(kernel, types, cc=(8, 0), lineinfo=True)
    result = rest.pop("result", 0)
    args = [argument for values in arrays for argument in array(values)]
    at = next(place for place, argument in enumerate(args) if argument is arrays[result])
    made_by = f"Numba {version('numba')} with numba-cuda {version('numba-cuda')}"
    Case(kernel.__name__, ptx, made_by, grid, block, args, at, expected, **rest).write(folder)


def main(folder):
    random = np.random.default_rng(18)
    a, b = random.random((40, 24), np.float32), random.random((24, 36), np.float32)
    write(folder, matmul, [3, 3], [TILE, TILE], [a, b, np.zeros((40, 36), np.float32)], a @ b, result=2,
          tolerance=1e-5, expect=["shared.bank_conflicts == 0"])

    column, row = Iota((20, 1)), Iota((1, 45))
    write(folder, broadcast, [6, 3], [8, 8], [np.zeros((20, 45), np.float32), column, row],
          column.values() + row.values(), expect=["store.requests == 30"])

    a = Iota((200,))
    padded = np.concatenate([np.zeros(2, np.float32), a.values()])
    write(folder, pool, [4], [BLOCK], [np.zeros(200, np.float32), a],
          padded[2:] + padded[1:-1] + padded[:-2], expect=["shared.bank_conflicts == 0", "load.requests <= 11"])

    b = Iota((200,))
    write(folder, dot, [4], [BLOCK], [np.zeros(1, np.float32), a, b],
          np.dot(a.values(), b.values()).reshape(1), expect=["shared.bank_conflicts == 0"])

    weights = Iota((5,))
    ahead = np.concatenate([a.values(), np.zeros(4, np.float32)])
    write(folder, convolve, [4], [BLOCK], [np.zeros(200, np.float32), a, weights],
          np.correlate(ahead, weights.values(), "valid"), expect=["shared.bank_conflicts == 0"])

    blocks = [a.values()[first : first + BLOCK] for first in range(0, 200, BLOCK)]
    write(folder, scan, [4], [BLOCK], [np.zeros(200, np.float32), a],
          np.concatenate([np.cumsum(block) for block in blocks]), expect=["store.sectors <= 1.0 * ideal"])


main(sys.argv[1])
