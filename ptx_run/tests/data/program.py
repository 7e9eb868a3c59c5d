"""Calls ptx_run by ctypes as tinygrad's mocks of drivers do: python3 program.py LIBRARY"""
import ctypes, mmap, os, sys, threading

lib = ctypes.CDLL(sys.argv[1])
lib.ptx_run.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ctypes.c_int, ctypes.c_int,
                        ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int]

SOURCE = b"""
.version 7.5
.target sm_35
.address_size 64
.visible .entry add(.param .u64 out, .param .u64 in, .param .u32 value) {
.reg .b32 %r<4>;
.reg .b64 %d<6>;
ld.param.u64 %d1, [out];
ld.param.u64 %d2, [in];
ld.param.u32 %r1, [value];
mov.u32 %r2, %ctaid.x;
mul.wide.u32 %d3, %r2, 4;
add.u64 %d4, %d1, %d3;
add.u64 %d5, %d2, %d3;
ld.global.u32 %r3, [%d5];
add.u32 %r3, %r3, %r1;
st.global.u32 [%d4], %r3;
ret;
}
"""


def address(buffer):
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def launch(out, source, value, blocks):
    """A launch of the mock: the text lies in a bytearray, and the arguments are cast to pointers."""
    text = bytearray(SOURCE)
    args = [ctypes.cast(arg, ctypes.c_void_p) for arg in (address(out), address(source), value)]
    return lib.ptx_run(ctypes.cast(address(text), ctypes.c_char_p), len(args), (ctypes.c_void_p * len(args))(*args), 1, 1, 1, blocks, 1, 1, 0)


def check(out, source, value):
    blocks = len(source) // 4
    code = launch(out, source, value, blocks)
    assert code == 0, code
    words = memoryview(out).cast("I"), memoryview(source).cast("I")
    assert all(words[0][i] == (words[1][i] + value) % 2**32 for i in range(blocks))


def numbers(count):
    return bytearray(b"".join(i.to_bytes(4, "little") for i in range(count)))


# Small and large buffers lie in different parts of the process's memory, and those of mmap in others.
for count in (1, 100, 100_000):
    for value in (0, 5, 2**32 - 1):
        check(bytearray(4 * count), numbers(count), value)
shared = mmap.mmap(-1, 8192)
check(shared, numbers(2048), 9)
threads = [threading.Thread(target=check, args=(bytearray(4000), numbers(1000), value)) for value in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

# A process that is forked after a launch launches, too, and its results come back by the shared memory.
child = os.fork()
if child == 0:
    check(shared, numbers(2048), 11)
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert memoryview(shared).cast("I")[2047] == 2047 + 11
print("all is right")
