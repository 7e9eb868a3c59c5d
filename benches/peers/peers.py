"""Times peers for permutes, on one GPU: PyTorch, CuPy, cuBLAS geam, cuTENSOR, torch.compile, JAX and a memcpy.

usage: peers.py PEER...        memcpy torch cupy geam cutensor compile jax

The script reads cases from standard input, one JSON object a line (`dtype`, `shape`, `axes`, `samples` and perhaps `steps`,
which `benches/random_permutes/README.md` explains). It answers each with one line a peer and a last line, `{"done": true}`.
Its very first line holds the versions. `scripts/compare-peers` starts it.

The protocol is that of `src/roofline/measure/`. Device time comes from a pair of events around each sample. A spin kernel
holds the stream until all samples are queued, which keeps the gaps between launches out. The median counts. Samples rotate
over arrays of four times the L2 cache, so no sample finds its data there, and none pays for lines that a flush has left
dirty. Besides the kernel, an event pair contains the start of a kernel behind an event, which takes a microsecond or two, the
same for all. JAX gives no access to its stream: its time is the host's clock over calls in a row.
"""

import ctypes
import glob
import json
import math
import os
import statistics
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import torch  # noqa: E402

from score import WIDTHS  # noqa: E402

# The type that peers take for an element, by its bytes. For 2 bytes it is halves, which all of them
# have.
TYPES = {1: torch.uint8, 2: torch.float16, 4: torch.float32, 8: torch.float64, 16: torch.complex128}
ALIGN = 256
WARM_UPS = 3
# Milliseconds of the first gate and of the last.
GATES = (4.0, 64.0)
# Cycles of the multiprocessors' clock, which the gate counts. At another clock the gate is a little
# longer or shorter.
CYCLES_PER_MS = 1.8e6


class Unsupported(Exception):
    """Raised for an operation that a peer lacks."""


class Case:
    """The arrays of one case, which runs take in turn."""

    def __init__(self, case):
        self.shape, self.axes, self.samples = case["shape"], case["axes"], case["samples"]
        self.width = WIDTHS[case["dtype"]]
        self.type = TYPES[self.width]
        self.bytes = math.prod(self.shape) * self.width
        self.permuted = [self.shape[axis] for axis in self.axes]
        self.steps = case.get("steps") or [1] * len(self.shape)
        self.storage = [extent * abs(step) for extent, step in zip(self.shape, self.steps)]
        read = math.prod(self.storage) * self.width
        l2 = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 50 << 20)
        # More arrays than runs are not needed.
        self.turns = min(max(1, -(-4 * l2 // (padded(read) + padded(self.bytes)))), self.samples + 2 * WARM_UPS)
        # With these bytes every float is a normal number above 0, so a product with 1, which some
        # peers compute, changes no bit.
        sources = torch.randint(8, 60, (self.turns, padded(read)), dtype=torch.uint8, device="cuda")
        results = torch.empty((self.turns, padded(self.bytes)), dtype=torch.uint8, device="cuda")
        self.sources = [self.view(sources[turn], self.storage) for turn in range(self.turns)]
        self.results = [self.view(results[turn], self.permuted) for turn in range(self.turns)]
        # Torch has no negative strides.
        self.views = None
        if min(self.steps) > 0:
            self.views = [self.stepped(source).permute(self.axes) for source in self.sources]
        self.expected = None

    def view(self, slot, shape):
        elements = slot[: math.prod(shape) * self.width]
        # Complex numbers are viewed as their parts first.
        elements = elements.view(torch.float64).view(self.type) if self.width == 16 else elements.view(self.type)
        return elements.view(shape)

    def stepped(self, source):
        """Returns the view of a source by its steps, forwards along every axis."""
        return source[tuple(slice(abs(step) - 1 if step < 0 else 0, None, abs(step)) for step in self.steps)]

    def right(self, result, permuted=True):
        """Returns whether `result` has the bits of the first source, permuted or as they lie."""
        if not permuted:
            return torch.equal(bits(self.sources[0])[: self.bytes], bits(result))
        if self.expected is None:
            backwards = [axis for axis, step in enumerate(self.steps) if step < 0]
            view = self.stepped(self.sources[0])
            view = torch.flip(view, backwards) if backwards else view
            self.expected = bits(view.permute(self.axes).contiguous())
        return torch.equal(self.expected, bits(result))


def padded(bytes_):
    return -(-bytes_ // ALIGN) * ALIGN


def bits(tensor):
    """Returns a contiguous tensor as bytes."""
    parts = torch.view_as_real(tensor) if tensor.dtype == torch.complex128 else tensor
    return parts.reshape(-1).view(torch.uint8)


class Clock:
    """Measures device time by events behind a gate."""

    def __init__(self):
        self.flushed = torch.zeros(64 << 20, dtype=torch.int32, device="cuda")

    def gate(self, ms):
        """Holds the stream for about that time, and returns the events around it."""
        start, end = self.pair()
        start.record()
        torch.cuda._sleep(int(ms * CYCLES_PER_MS))
        end.record()
        return start, end

    @staticmethod
    def pair():
        return torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def flush(self):
        """Fills the L2 cache with unrelated data by reading it, so that nothing is left to write back."""
        self.flushed.sum()
        torch.cuda.synchronize()

    def device(self, call, samples, warm_ups=WARM_UPS):
        """Returns the sorted milliseconds of `samples` calls, and whether all were queued before the first began."""
        self.flush()
        turn = 0
        for turn in range(warm_ups):
            call(turn)
        torch.cuda.synchronize()
        gate = GATES[0]
        while True:
            pairs = [self.pair() for _ in range(samples)]
            begin = time.perf_counter()
            closed, opened = self.gate(gate)
            for start, end in pairs:
                turn += 1
                start.record()
                call(turn)
                end.record()
            queued = (time.perf_counter() - begin) * 1e3
            torch.cuda.synchronize()
            gapless = queued < closed.elapsed_time(opened)
            if gapless or gate >= GATES[1]:
                return sorted(start.elapsed_time(end) for start, end in pairs), gapless
            gate *= 2


def memcpy(case):
    elements = math.prod(case.shape)
    sources = [source.view(-1)[:elements] for source in case.sources]
    return lambda turn: case.results[turn % case.turns].view(-1).copy_(sources[turn % case.turns])


def eager(case):
    if case.views is None:
        raise Unsupported("no negative strides")
    return lambda turn: case.results[turn % case.turns].copy_(case.views[turn % case.turns])


def cupy_copy(case):
    import cupy

    steps = tuple(slice(None, None, step) for step in case.steps)
    sources = [cupy.from_dlpack(source)[steps].transpose(case.axes) for source in case.sources]
    results = [cupy.from_dlpack(result) for result in case.results]
    return lambda turn: cupy.copyto(results[turn % case.turns], sources[turn % case.turns])


def matrix(case):
    """Returns the rows and columns of a case that transposes one matrix, whatever its axes are, or `None`."""
    at = case.axes[0]
    if case.axes != [*range(at, len(case.axes)), *range(at)] or any(step != 1 for step in case.steps):
        return None
    return math.prod(case.shape[:at]), math.prod(case.shape[at:])


def geam(case):
    import cupy
    import numpy
    from cupy_backends.cuda.libs import cublas

    extents = matrix(case)
    if case.width not in (4, 8, 16) or not extents:
        raise Unsupported("matrices of 4, 8 and 16 bytes only")
    add = {4: cublas.sgeam, 8: cublas.dgeam, 16: cublas.zgeam}[case.width]
    type_ = {4: numpy.float32, 8: numpy.float64, 16: numpy.complex128}[case.width]
    one, zero = numpy.array(1, type_), numpy.array(0, type_)
    alpha, beta = one.ctypes.data, zero.ctypes.data
    handle = cupy.cuda.device.get_cublas_handle()
    cublas.setStream(handle, torch.cuda.current_stream().cuda_stream)
    rows, cols = extents
    sources = [source.data_ptr() for source in case.sources]
    results = [result.data_ptr() for result in case.results]

    # C order of rows x cols is column-major cols x rows, which cuBLAS expects.
    def call(turn):
        source, result = sources[turn % case.turns], results[turn % case.turns]
        add(
            handle, cublas.CUBLAS_OP_T, cublas.CUBLAS_OP_N, rows, cols, alpha, source, cols, beta, result, rows, result, rows,
        )

    # The two numbers live as long as their addresses are used.
    call.keep = (one, zero)
    return call


class Cutensor:
    """Calls cuTENSOR 2 through its C interface. The numbers come from its `types.h`."""

    # By width: the data type, the symbol of the computation's type, and 1 in that type.
    OF_WIDTH = {
        2: (2, "CUTENSOR_COMPUTE_DESC_16F", ctypes.c_uint16 * 1, [0x3C00]),
        4: (0, "CUTENSOR_COMPUTE_DESC_32F", ctypes.c_float * 1, [1.0]),
        8: (1, "CUTENSOR_COMPUTE_DESC_64F", ctypes.c_double * 1, [1.0]),
        16: (5, "CUTENSOR_COMPUTE_DESC_64F", ctypes.c_double * 2, [1.0, 0.0]),
    }
    IDENTITY, ALGO_DEFAULT, JIT_NONE = 1, -1, 0

    def __init__(self):
        places = [os.environ.get("CUTENSOR_LIBRARY", "libcutensor.so.2")]
        for folder in sys.path + ["/usr/lib", "/usr/lib/x86_64-linux-gnu", "/usr/local/cuda/lib64"]:
            for pattern in ("", "cutensor/lib/", "nvidia/*/lib/", "libcutensor/*/"):
                places += glob.glob(os.path.join(folder, pattern + "libcutensor.so.2"))
        for place in places:
            try:
                self.library = ctypes.CDLL(place)
                break
            except OSError:
                continue
        else:
            raise Unsupported("libcutensor.so.2 is not here; name it by CUTENSOR_LIBRARY")
        self.library.cutensorGetErrorString.restype = ctypes.c_char_p
        self.library.cutensorGetVersion.restype = ctypes.c_size_t
        self.handle = ctypes.c_void_p()
        self.check(self.library.cutensorCreate(ctypes.byref(self.handle)))

    def check(self, status):
        if status != 0:
            raise RuntimeError(f"cuTENSOR: {self.library.cutensorGetErrorString(status).decode()}")

    def version(self):
        number = self.library.cutensorGetVersion()
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"

    def descriptor(self, extents, type_, strides=None):
        """Describes a tensor whose first axis varies fastest, by default without gaps."""
        numbers = ctypes.c_int64 * len(extents)
        made, extents = ctypes.c_void_p(), numbers(*extents)
        strides = numbers(*strides) if strides else None
        self.check(
            self.library.cutensorCreateTensorDescriptor(
                self.handle, ctypes.byref(made), ctypes.c_uint32(len(extents)), extents, strides, ctypes.c_int(type_),
                ctypes.c_uint32(ALIGN),
            )
        )
        return made

    def plan(self, case, type_, compute):
        library, handle, rank = self.library, self.handle, len(case.shape)
        modes = ctypes.c_int32 * rank
        strides = None
        if any(step != 1 for step in case.steps):
            within = [math.prod(case.storage[axis + 1 :]) for axis in range(rank)]
            strides = [step * stride for step, stride in zip(case.steps, within)][::-1]
        source = self.descriptor(case.shape[::-1], type_, strides)
        result = self.descriptor(case.permuted[::-1], type_)
        operation, preference, plan = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.check(
            library.cutensorCreatePermutation(
                handle, ctypes.byref(operation), source, modes(*reversed(range(rank))), ctypes.c_int(self.IDENTITY),
                result, modes(*reversed(case.axes)), compute,
            )
        )
        self.check(
            library.cutensorCreatePlanPreference(
                handle, ctypes.byref(preference), ctypes.c_int(self.ALGO_DEFAULT), ctypes.c_int(self.JIT_NONE)
            )
        )
        self.check(
            library.cutensorCreatePlan(handle, ctypes.byref(plan), operation, preference, ctypes.c_uint64(0))
        )
        return plan

    def __call__(self, case):
        if case.width not in self.OF_WIDTH:
            raise Unsupported("no 1-byte type")
        if min(case.steps) < 0:
            raise Unsupported("no negative strides")
        type_, compute, scalar, one = self.OF_WIDTH[case.width]
        plan = self.plan(case, type_, ctypes.c_void_p.in_dll(self.library, compute))
        one = scalar(*one)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        sources = [ctypes.c_void_p(source.data_ptr()) for source in case.sources]
        results = [ctypes.c_void_p(result.data_ptr()) for result in case.results]
        permute = self.library.cutensorPermute

        def call(turn):
            turn %= case.turns
            status = permute(self.handle, plan, one, sources[turn], results[turn], stream)
            if status != 0:
                self.check(status)

        return call


_CUTENSOR = []


def cutensor(case):
    if not _CUTENSOR:
        _CUTENSOR.append(Cutensor())
    return _CUTENSOR[0](case)


def measure(clock, case, call, permuted=True):
    """Returns the answer of a peer that writes into the case's results."""
    bits(case.results[0]).fill_(0xA5)
    call(0)
    torch.cuda.synchronize()
    verified = case.right(case.results[0], permuted)
    times, gapless = clock.device(call, case.samples)
    return answer(times, gapless, verified)


def answer(times, gapless, verified):
    """Returns a peer's answer: milliseconds, whether they are free of gaps, and whether the result is right."""
    return {"ms": statistics.median(times), "gapless": gapless, "verified": verified}


def check_plain(case):
    if any(step != 1 for step in case.steps):
        raise Unsupported("arrays in C order only")


def compiled(clock, case):
    """Times torch.compile, which allocates its own results. One for each turn is kept, so that its memory rotates too."""
    check_plain(case)
    torch._dynamo.reset()
    axes = tuple(case.axes)
    function = torch.compile(lambda source: source.permute(axes).contiguous(), dynamic=False)
    verified = case.right(function(case.sources[0]))
    kept = [None] * min(case.turns, 64)

    def call(turn):
        kept[turn % len(kept)] = function(case.sources[turn % case.turns])

    times, gapless = clock.device(call, case.samples, warm_ups=len(kept) + WARM_UPS)
    return answer(times, gapless, verified)


def jax_wall(clock, case):
    import jax

    check_plain(case)
    jax.config.update("jax_enable_x64", True)
    sources = [jax.dlpack.from_dlpack(source) for source in case.sources[:64]]
    axes = tuple(case.axes)
    function = jax.jit(lambda source: jax.numpy.transpose(source, axes))
    verified = case.right(torch.from_dlpack(function(sources[0])))

    def call(turn):
        return function(sources[turn % len(sources)])

    times, in_a_row = [], 5
    for round_ in range(10):
        begin = time.perf_counter()
        results = [call(round_ * in_a_row + turn) for turn in range(in_a_row)]
        results[-1].block_until_ready()
        times.append((time.perf_counter() - begin) / in_a_row * 1e3)
        del results
    return answer(times, False, verified)


PEERS = {
    "memcpy": lambda clock, case: measure(clock, case, memcpy(case), permuted=False),
    "torch": lambda clock, case: measure(clock, case, eager(case)),
    "cupy": lambda clock, case: measure(clock, case, cupy_copy(case)),
    "geam": lambda clock, case: measure(clock, case, geam(case)),
    "cutensor": lambda clock, case: measure(clock, case, cutensor(case)),
    "compile": compiled,
    "jax": jax_wall,
}


def versions(peers):
    """Returns the versions of the peers, as far as they give them."""
    found = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda}
    for peer in {"cupy", "jax"}.intersection(peers):
        try:
            found[peer] = __import__(peer).__version__
        except Exception as error:
            found[peer] = f"not here: {error!r}"[:200]
    if "cutensor" in peers:
        try:
            _CUTENSOR.append(Cutensor())
            found["cutensor"] = _CUTENSOR[0].version()
        except Exception as error:
            found["cutensor"] = f"not here: {error}"[:200]
    return found


def say(answer):
    print(json.dumps(answer), flush=True)


def main():
    peers = sys.argv[1:]
    unknown = [peer for peer in peers if peer not in PEERS]
    if unknown or not peers:
        sys.exit(f"peers.py: name peers of {', '.join(PEERS)}, not {unknown}")
    clock = Clock()
    say({"versions": versions(peers)})
    for line in sys.stdin:
        case = None
        try:
            case = Case(json.loads(line))
        except Exception as error:
            say({"peer": peers[0], "error": repr(error)[:200]})
        for peer in peers if case else []:
            try:
                say({"peer": peer} | PEERS[peer](clock, case))
            except (Unsupported, ImportError) as lack:
                say({"peer": peer, "lacks": str(lack)})
            except Exception as error:
                say({"peer": peer, "error": repr(error)[:200]})
                # After a fault nothing works in this process. It ends here, and another one takes
                # the next case.
                torch.cuda.synchronize()
        del case
        torch.cuda.empty_cache()
        say({"done": True})


if __name__ == "__main__":
    main()
