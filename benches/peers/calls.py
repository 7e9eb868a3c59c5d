"""Calls of PyTorch and of plain kernels of CUDA C++ for the operations of a bench, and their times. `operations.py` imports this.

PyTorch does each operation as its users would: in place or into existing memory where it can. The kernels of CUDA C++ are
BabelStream's: one element a thread, blocks of 1024. NVRTC compiles them. The protocol is that of `peers.py`.
"""

import math
import statistics

import torch

from peers import Clock, Unsupported

VERSIONS = {"torch": torch.__version__, "cuda": torch.version.cuda}
SCALAR = 0.3
SAMPLES = 20
THREADS = 1024
TYPES = {
    "u8": torch.uint8, "i32": torch.int32, "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32,
    "f64": torch.float64,
}
# BabelStream's kernels, by the expression that they write to `c`.
STATEMENTS = {
    "copy": "c[i] = a[i];",
    "mul": "c[i] = (T)0.3 * a[i];",
    "add": "c[i] = a[i] + b[i];",
    "triad": "c[i] = a[i] + (T)0.3 * b[i];",
    "nstream": "c[i] += a[i] + (T)0.3 * b[i];",
    "fill": "c[i] = (T)0.3;",
}
C_TYPES = {"f32": "float", "f64": "double"}


class Arrays:
    """The operands of one case, in sets that fill four times the L2 cache."""

    def __init__(self, case, count):
        self.case, self.shape = case, case["shape"]
        source, result = TYPES[case.get("from") or case["dtype"]], TYPES[case["dtype"]]
        l2 = getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "L2_cache_size", 50 << 20)
        self.turns = max(1, math.ceil(4 * l2 / (case["read"] + case["written"])))
        self.a = [self.numbers(source) for _ in range(self.turns)]
        self.b = [self.numbers(source) for _ in range(self.turns if count > 2 else 0)]
        self.c = [torch.zeros(self.shape, dtype=result, device="cuda") for _ in range(self.turns if count > 1 else 0)]

    def numbers(self, type_):
        if type_.is_floating_point:
            return torch.empty(self.shape, dtype=type_, device="cuda").uniform_(-2, 2)
        return torch.randint(0, 128, self.shape, dtype=type_, device="cuda")


def streams(op):
    """Returns the number of operands of an operation on whole arrays, and PyTorch's call on them."""
    single = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
    return {
        "copy": (2, lambda a, b, c: c.copy_(a)),
        "fill": (2, lambda a, b, c: c.fill_(SCALAR)),
        "mul": (2, lambda a, b, c: torch.mul(a, SCALAR, out=c)),
        "add": (3, lambda a, b, c: torch.add(a, b, out=c)),
        "triad": (3, lambda a, b, c: torch.add(a, b, alpha=SCALAR, out=c)),
        "nstream": (3, lambda a, b, c: c.add_(a).add_(b, alpha=SCALAR)),
        "axpy": (2, lambda a, b, c: c.add_(a, alpha=SCALAR)),
        "sum": (1, lambda a, b, c: torch.sum(a, dtype=single.get(a.dtype, a.dtype))),
        "dot": (3, lambda a, b, c: torch.dot(a, b)),
        "min": (1, lambda a, b, c: torch.amin(a)),
        "max": (1, lambda a, b, c: torch.amax(a)),
        "cast": (2, lambda a, b, c: c.copy_(a)),
    }.get(op)


def along(op, axis):
    """Returns the same for an operation along an axis, or on rows."""
    return {
        "sum": (1, lambda a, b, c: torch.sum(a, dim=axis)),
        "max": (1, lambda a, b, c: torch.amax(a, dim=axis)),
        "argmax": (1, lambda a, b, c: torch.argmax(a, dim=axis)),
        "softmax": (2, lambda a, b, c: torch.softmax(a, dim=-1, out=c)),
        "mean-variance": (1, lambda a, b, c: torch.var_mean(a, dim=-1, correction=0)),
    }.get(op)


def indexed(op, rows):
    order = torch.randperm(rows, device="cuda")
    return {
        "gather": (2, lambda a, b, c: torch.index_select(a, 0, order, out=c)),
        "scatter": (2, lambda a, b, c: c.index_copy_(0, order, a)),
    }.get(op)


def normalized(channels, type_):
    mean = torch.tensor([123.7, 116.3, 103.5, 127.5][:channels], device="cuda").view(-1, 1, 1)
    deviation = torch.tensor([58.4, 57.1, 57.4, 63.8][:channels], device="cuda").view(-1, 1, 1)
    return 1, lambda a, b, c: a.permute(0, 3, 1, 2).float().sub(mean).div(deviation).to(type_)


def pytorch(case):
    """Makes the operands of a case, and PyTorch's call for it."""
    op, group = case["op"], case["group"]
    if group == "stream" or op == "cast":
        found = streams(op)
    elif group == "axis":
        found = along(op, case["axes"][0] if case["axes"] else -1)
    elif op == "normalize":
        found = normalized(case["shape"][-1], TYPES[case["dtype"]])
    else:
        found = indexed(op, case["shape"][0])
    if found is None:
        raise Unsupported(f"no {op}")
    count, run = found
    arrays = Arrays(case, count)
    nothing = [None] * arrays.turns
    a, b, c = arrays.a, arrays.b or nothing, arrays.c or nothing
    kept = [None] * min(arrays.turns, 4)

    def call(turn):
        place = turn % arrays.turns
        # Results that it allocates are kept for some turns, so that their memory rotates too.
        kept[turn % len(kept)] = run(a[place], b[place], c[place])

    return call


def cuda(case):
    """Makes the same for a plain kernel; its result is compared with PyTorch's."""
    import cupy

    statement, type_ = STATEMENTS.get(case["op"]), C_TYPES.get(case["dtype"])
    if case["group"] != "stream" or statement is None or type_ is None:
        raise Unsupported("no such kernel")
    source = f"""
        typedef {type_} T;
        extern "C" __global__ void kernel(T* c, const T* a, const T* b) {{
            const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
            {statement}
        }}"""
    kernel = cupy.RawModule(code=source).get_function("kernel")
    arrays = Arrays(case, 3)
    (length,) = case["shape"]
    if length % THREADS:
        raise Unsupported("no whole blocks")
    stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)

    def call(turn):
        place = turn % arrays.turns
        operands = tuple(array[place].data_ptr() for array in (arrays.c, arrays.a, arrays.b))
        with stream:
            kernel((length // THREADS,), (THREADS,), operands)

    expected = arrays.c[0].clone()
    run = streams(case["op"])[1]
    run(arrays.a[0], arrays.b[0], expected)
    call(0)
    torch.cuda.synchronize()
    if not torch.allclose(arrays.c[0], expected, rtol=1e-6, atol=1e-6):
        raise RuntimeError("its result is wrong")
    return call


def answered(run):
    """Yields the peers' answer for each case of a run and each peer."""
    torch.cuda.set_device(run["device"]["ordinal"])
    clock = Clock()
    for case in run["cases"]:
        if case["group"] not in ("stream", "axis", "conversion"):
            continue
        for peer, make in [("torch", pytorch), ("cuda", cuda)]:
            said = {"case": case["name"], "peer": peer}
            try:
                torch.cuda.empty_cache()
                times, gapless = clock.device(make(case), SAMPLES)
                said |= {"ms": statistics.median(times), "gapless": gapless}
            except Unsupported as lacks:
                said["lacks"] = str(lacks)
            except Exception as error:  # the cell of a failing peer says so
                said["error"] = f"{error!r}"[:200]
            yield said
