"""Tests of kernels, some of which fail by what the checkers find. `cli/tests/it/pytest.rs` runs them."""

import ctypes

import pytest

PTX = b"""
.version 7.0
.target sm_75
.address_size 64
.visible .entry apart(.param .u64 a) {
    .reg .b32 %r<2>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r1;
    ret;
}
.visible .entry together(.param .u64 a) {
    .reg .b32 %r<2>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x;
    st.global.u32 [%rd1], %r1;
    ret;
}
"""
THREADS = 64


class Kernels:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context, self.module = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
        self.call("cuModuleLoadData", ctypes.byref(self.module), PTX)
        self.buffer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(self.buffer), ctypes.c_size_t(4 * THREADS))

    def call(self, name, *arguments):
        assert getattr(self.cuda, name)(*arguments) == 0, name

    def launch(self, name, waits=True):
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), self.module, name)
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(self.buffer))
        self.call("cuLaunchKernel", function, 1, 1, 1, THREADS, 1, 1, 0, None, arguments, None)
        if waits:
            self.call("cuCtxSynchronize")


@pytest.fixture(scope="module")
def kernels():
    return Kernels()


@pytest.mark.warpstride("store.sectors <= 1.0 * ideal", kernel="apart")
def test_held(kernels, soft_gpu):
    kernels.launch(b"apart")
    assert [kernel["launches"] for kernel in soft_gpu.kernels] == [1]


@pytest.mark.warpstride("store.sectors < 1.0 * ideal")
def test_short(kernels):
    kernels.launch(b"apart")


@pytest.mark.warpstride("store.sectors == ideal", kernel="missing")
def test_missing(kernels):
    kernels.launch(b"apart")


def test_race(kernels):
    kernels.launch(b"together")


def test_clean_after_the_race(kernels, soft_gpu):
    assert soft_gpu.kernels == []
    kernels.launch(b"apart")
    kernels.launch(b"apart")
    soft_gpu.expect("store.requests == 4")


def test_no_wait(kernels):
    kernels.launch(b"together", waits=False)


def test_clean_after_no_wait(kernels):
    kernels.launch(b"apart")


def test_double_free(kernels):
    buffer = ctypes.c_uint64()
    kernels.call("cuMemAlloc_v2", ctypes.byref(buffer), ctypes.c_size_t(4))
    kernels.call("cuMemFree_v2", buffer)
    kernels.cuda.cuMemFree_v2(buffer)
