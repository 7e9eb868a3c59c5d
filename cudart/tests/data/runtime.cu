// A program of CUDA's runtime: each check ends the program with its line if it fails.
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

#define EXPECT(condition)                                                        \
    if (!(condition)) {                                                          \
        std::printf("line %d: %s, last error %s\n", __LINE__, #condition,        \
                    cudaGetErrorName(cudaPeekAtLastError()));                    \
        std::exit(1);                                                            \
    }
#define OK(call) EXPECT((call) == cudaSuccess)

__constant__ int factor = 3;
__device__ int seen[4] = {1, 2, 3, 4};
__managed__ int shared_by_all = 5;

__global__ void scale(int *data, int count) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) data[at] = data[at] * factor + seen[at % 4];
}
__global__ void add_shared() { shared_by_all += 10; }
__global__ void print(int number) { printf("thread %d prints %d\n", threadIdx.x, number); }
__global__ void check_that(int number) { assert(number == 1); }
__global__ void fault(int *data) { *data = 1; }
__global__ void fill(int *data, int value) { data[threadIdx.x] = value; }

static void launches() {
    const int count = 1000;
    std::vector<int> host(count);
    for (int i = 0; i < count; i++) host[i] = i;
    int *device;
    OK(cudaMalloc(&device, count * sizeof(int)));
    OK(cudaMemcpy(device, host.data(), count * sizeof(int), cudaMemcpyHostToDevice));
    scale<<<(count + 127) / 128, 128>>>(device, count);
    OK(cudaGetLastError());
    OK(cudaMemcpy(host.data(), device, count * sizeof(int), cudaMemcpyDefault));
    for (int i = 0; i < count; i++) EXPECT(host[i] == 3 * i + 1 + i % 4);

    int seven = 7, back[2];
    OK(cudaMemcpyToSymbol(factor, &seven, sizeof seven));
    OK(cudaMemcpyToSymbol(seen, &seven, sizeof seven, sizeof(int)));
    OK(cudaMemcpyFromSymbol(back, seen, sizeof back));
    EXPECT(back[0] == 1 && back[1] == 7);
    EXPECT(cudaMemcpyToSymbol(seen, &seven, sizeof seven, sizeof seen) == cudaErrorInvalidValue);
    EXPECT(cudaGetSymbolAddress((void **)&device, &seven) == cudaErrorInvalidSymbol);
    size_t bytes;
    OK(cudaGetSymbolSize(&bytes, seen));
    EXPECT(bytes == sizeof seen);
    cudaGetLastError();

    scale<<<1, 4096>>>(device, count);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    EXPECT(cudaGetLastError() == cudaSuccess);
    EXPECT(cudaLaunchKernel((void *)&seven, dim3(1), dim3(1), nullptr, 0, 0) == cudaErrorInvalidDeviceFunction);
    EXPECT(cudaPeekAtLastError() == cudaErrorInvalidDeviceFunction);
    EXPECT(cudaGetLastError() == cudaErrorInvalidDeviceFunction);

    void *arguments[] = {&device, (void *)&count};
    OK(cudaLaunchCooperativeKernel(scale, dim3(2), dim3(64), arguments));
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(2);
    config.blockDim = dim3(64);
    OK(cudaLaunchKernelEx(&config, scale, device, count));
    OK(cudaDeviceSynchronize());
    OK(cudaFree(device));
    EXPECT(cudaFree(device) != cudaSuccess);
    cudaGetLastError();
    OK(cudaFree(nullptr));
}

static void attributes() {
    cudaFuncAttributes found;
    OK(cudaFuncGetAttributes(&found, scale));
    EXPECT(found.maxThreadsPerBlock == 1024 && found.ptxVersion >= 90);
    int blocks, size;
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, 128, 0));
    EXPECT(blocks > 0);
    OK(cudaOccupancyMaxPotentialBlockSize(&blocks, &size, scale));
    EXPECT(blocks > 0 && size > 0);
    OK(cudaFuncSetAttribute(scale, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
    cudaDeviceProp properties;
    OK(cudaGetDeviceProperties(&properties, 0));
    EXPECT(!std::strncmp(properties.name, "warpstride", 10));
    EXPECT(properties.warpSize == 32 && properties.major == 9 && properties.maxThreadsPerBlock == 1024);
    EXPECT(properties.totalGlobalMem > (1ull << 30) && properties.multiProcessorCount > 0);
    EXPECT(properties.maxGridSize[1] == 65535 && properties.cooperativeLaunch == 1);
    EXPECT(properties.sharedMemPerBlockOptin > 100000);
    EXPECT(cudaGetDeviceProperties(&properties, 99) == cudaErrorInvalidDevice);
    EXPECT(cudaSetDevice(-1) == cudaErrorInvalidDevice);
    EXPECT(cudaGetLastError() == cudaErrorInvalidDevice);
    int device = 9, version;
    OK(cudaGetDevice(&device));
    EXPECT(device == 0);
    OK(cudaRuntimeGetVersion(&version));
    EXPECT(version / 1000 == CUDART_VERSION / 1000);
    EXPECT(!std::strcmp(cudaGetErrorName(cudaErrorNotReady), "cudaErrorNotReady"));
    EXPECT(!std::strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory"));
    size_t free, total;
    OK(cudaMemGetInfo(&free, &total));
    EXPECT(free <= total && total == properties.totalGlobalMem);
}

static void boxes() {
    const size_t width = 100, height = 7, depth = 3;
    char *rows;
    size_t pitch;
    OK(cudaMallocPitch(&rows, &pitch, width, height));
    EXPECT(pitch >= width && pitch % 32 == 0);
    OK(cudaMemset2D(rows, pitch, 9, width, height));
    std::vector<char> host(width * height);
    OK(cudaMemcpy2D(host.data(), width, rows, pitch, width, height, cudaMemcpyDeviceToHost));
    for (char byte : host) EXPECT(byte == 9);
    EXPECT(cudaMemcpy2D(host.data(), 1, rows, pitch, width, height, cudaMemcpyDeviceToHost) ==
           cudaErrorInvalidPitchValue);
    EXPECT(cudaMemcpy(host.data(), rows, 1, (cudaMemcpyKind)77) == cudaErrorInvalidMemcpyDirection);
    cudaGetLastError();

    cudaExtent extent = make_cudaExtent(width, height, depth);
    cudaPitchedPtr box;
    OK(cudaMalloc3D(&box, extent));
    OK(cudaMemset3D(box, 1, extent));
    OK(cudaMemset3D(box, 2, make_cudaExtent(width, height - 1, depth)));
    std::vector<char> all(width * height * depth);
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = box;
    copy.dstPtr = make_cudaPitchedPtr(all.data(), width, width, height);
    copy.extent = extent;
    copy.kind = cudaMemcpyDeviceToHost;
    OK(cudaMemcpy3D(&copy));
    for (size_t z = 0; z < depth; z++)
        for (size_t y = 0; y < height; y++)
            for (size_t x = 0; x < width; x++) EXPECT(all[(z * height + y) * width + x] == (y + 1 < height ? 2 : 1));
    OK(cudaFree(rows));
    OK(cudaFree(box.ptr));
}

static void pointers() {
    void *device, *host, *managed;
    int on_stack;
    OK(cudaMalloc(&device, 64));
    OK(cudaMallocHost(&host, 64));
    OK(cudaMallocManaged(&managed, 64));
    cudaPointerAttributes found;
    OK(cudaPointerGetAttributes(&found, (char *)device + 8));
    EXPECT(found.type == cudaMemoryTypeDevice && found.device == 0 && found.devicePointer == (char *)device + 8);
    OK(cudaPointerGetAttributes(&found, host));
    EXPECT(found.type == cudaMemoryTypeHost && found.hostPointer == host);
    OK(cudaPointerGetAttributes(&found, managed));
    EXPECT(found.type == cudaMemoryTypeManaged);
    OK(cudaPointerGetAttributes(&found, &on_stack));
    EXPECT(found.type == cudaMemoryTypeUnregistered && found.devicePointer == nullptr);
    *(int *)managed = 1;
    fill<<<1, 4>>>((int *)managed, 6);
    OK(cudaDeviceSynchronize());
    EXPECT(((int *)managed)[3] == 6);
    OK(cudaMemset(managed, 1, 64));
    OK(cudaDeviceSynchronize());
    EXPECT(*(int *)managed == 0x01010101);
    OK(cudaFree(device));
    OK(cudaFreeHost(host));
    OK(cudaFree(managed));
    OK(cudaMalloc(&device, 0));
    EXPECT(device == nullptr);
    EXPECT(cudaMalloc(&device, (size_t)1 << 50) == cudaErrorMemoryAllocation);
    EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);
}

static void CUDART_CB note(void *data) { *(int *)data += 1; }
static void CUDART_CB note_too(cudaStream_t, cudaError_t result, void *data) { *(int *)data += result == cudaSuccess; }

static void streams() {
    cudaStream_t stream;
    cudaEvent_t before, after;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaEventCreate(&before));
    OK(cudaEventCreateWithFlags(&after, cudaEventDefault));
    int *device, *host, calls = 0;
    OK(cudaMallocAsync(&device, 1024, stream));
    OK(cudaMallocHost(&host, 1024));
    OK(cudaEventRecord(before, stream));
    fill<<<1, 256, 0, stream>>>(device, 4);
    OK(cudaMemcpyAsync(host, device, 1024, cudaMemcpyDeviceToHost, stream));
    OK(cudaLaunchHostFunc(stream, note, &calls));
    OK(cudaStreamAddCallback(stream, note_too, &calls, 0));
    OK(cudaFreeAsync(device, stream));
    OK(cudaEventRecord(after, stream));
    OK(cudaStreamWaitEvent(cudaStreamPerThread, after, 0));
    OK(cudaEventSynchronize(after));
    OK(cudaStreamSynchronize(stream));
    OK(cudaStreamQuery(stream));
    EXPECT(calls == 2 && host[0] == 4 && host[255] == 4);
    float milliseconds = -1;
    OK(cudaEventElapsedTime(&milliseconds, before, after));
    EXPECT(milliseconds >= 0);
    OK(cudaStreamDestroy(stream));
    OK(cudaEventDestroy(before));
    OK(cudaEventDestroy(after));
    EXPECT(cudaStreamSynchronize(stream) != cudaSuccess);
    cudaGetLastError();
    std::thread other([&] {
        EXPECT(cudaPeekAtLastError() == cudaSuccess);
        EXPECT(cudaEventQuery(nullptr) != cudaSuccess);
    });
    other.join();
    EXPECT(cudaPeekAtLastError() == cudaSuccess);
    OK(cudaFreeHost(host));
}

static void prints() {
    print<<<1, 2>>>(42);
    OK(cudaDeviceSynchronize());
}

static void managed() {
    shared_by_all += 1;
    add_shared<<<1, 1>>>();
    OK(cudaDeviceSynchronize());
    EXPECT(shared_by_all == 16);
}

static void resets() {
    int *device;
    OK(cudaMalloc(&device, 16));
    int seven = 7, now = 0;
    OK(cudaMemcpyToSymbol(factor, &seven, sizeof seven));
    OK(cudaDeviceReset());
    OK(cudaMemcpyFromSymbol(&now, factor, sizeof now));
    EXPECT(now == 3);
    OK(cudaMalloc(&device, 16));
    fill<<<1, 4>>>(device, 1);
    OK(cudaDeviceSynchronize());
    std::thread other([] { OK(cudaDeviceReset()); });
    other.join();
    OK(cudaMalloc(&device, 16));
    fill<<<1, 4>>>(device, 1);
    OK(cudaDeviceSynchronize());
}

static void graphs() {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    const size_t bytes = 4 * sizeof(int);
    int *device, *host;
    OK(cudaStreamCreate(&stream));
    OK(cudaMalloc(&device, bytes));
    OK(cudaMallocHost(&host, bytes));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    fill<<<1, 4, 0, stream>>>(device, 8);
    OK(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamEndCapture(stream, &graph));
    size_t nodes = 0;
    OK(cudaGraphGetNodes(graph, nullptr, &nodes));
    EXPECT(nodes == 2);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    EXPECT(host[3] == 0);
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    EXPECT(host[3] == 8);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));

    OK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t clear, kernel, copy;
    cudaMemsetParams zeros = {};
    zeros.dst = device;
    zeros.elementSize = 4;
    zeros.width = 4;
    zeros.height = 1;
    OK(cudaGraphAddMemsetNode(&clear, graph, nullptr, 0, &zeros));
    int value = 6;
    void *arguments[] = {&device, &value};
    cudaKernelNodeParams launch = {};
    launch.func = (void *)fill;
    launch.gridDim = dim3(1);
    launch.blockDim = dim3(2);
    launch.kernelParams = arguments;
    OK(cudaGraphAddKernelNode(&kernel, graph, &clear, 1, &launch));
    OK(cudaGraphAddMemcpyNode1D(&copy, graph, &kernel, 1, host, device, bytes, cudaMemcpyDeviceToHost));
    cudaKernelNodeParams found = {};
    OK(cudaGraphKernelNodeGetParams(kernel, &found));
    EXPECT(found.func == (void *)fill && found.blockDim.x == 2);
    cudaMemcpy3DParms copied = {};
    OK(cudaGraphMemcpyNodeGetParams(copy, &copied));
    EXPECT(copied.dstPtr.ptr == host && copied.extent.width == bytes && copied.kind == cudaMemcpyDeviceToHost);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    EXPECT(host[0] == 6 && host[1] == 6 && host[2] == 0);
    value = 7;
    OK(cudaGraphExecKernelNodeSetParams(exec, kernel, &launch));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    EXPECT(host[0] == 7);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));

    cudaGraphNodeParams any = {};
    any.type = cudaGraphNodeTypeKernel;
    any.kernel.func = (void *)fill;
    any.kernel.gridDim = dim3(1);
    any.kernel.blockDim = dim3(4);
    any.kernel.kernelParams = arguments;
    value = 11;
    OK(cudaGraphCreate(&graph, 0));
#if CUDART_VERSION >= 13000
    OK(cudaGraphAddNode(&kernel, graph, nullptr, nullptr, 0, &any));
#else
    OK(cudaGraphAddNode(&kernel, graph, nullptr, 0, &any));
#endif
    cudaGraphNodeParams copying = {};
    copying.type = cudaGraphNodeTypeMemcpy;
    copying.memcpy.copyParams.srcPtr = make_cudaPitchedPtr(device, bytes, bytes, 1);
    copying.memcpy.copyParams.dstPtr = make_cudaPitchedPtr(host, bytes, bytes, 1);
    copying.memcpy.copyParams.extent = make_cudaExtent(bytes, 1, 1);
    copying.memcpy.copyParams.kind = cudaMemcpyDefault;
#if CUDART_VERSION >= 13000
    OK(cudaGraphAddNode(&copy, graph, &kernel, nullptr, 1, &copying));
#else
    OK(cudaGraphAddNode(&copy, graph, &kernel, 1, &copying));
#endif
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    EXPECT(host[3] == 11);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

static void asserts() {
    check_that<<<1, 1>>>(0);
    EXPECT(cudaDeviceSynchronize() == cudaErrorAssert);
    EXPECT(cudaGetLastError() == cudaErrorAssert);
    void *none;
    EXPECT(cudaMalloc(&none, 4) == cudaErrorAssert);
}

static void faults() {
    fault<<<1, 1>>>((int *)8);
    EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    EXPECT(cudaGetLastError() == cudaErrorIllegalAddress);
    EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
}

int main(int count, char **names) {
    const struct { const char *name; void (*check)(); } checks[] = {
        {"launches", launches}, {"attributes", attributes}, {"boxes", boxes}, {"pointers", pointers},
        {"streams", streams}, {"prints", prints}, {"managed", managed}, {"resets", resets}, {"graphs", graphs},
        {"asserts", asserts}, {"faults", faults},
    };
    for (int at = 1; at < count; at++)
        for (auto &check : checks)
            if (!std::strcmp(names[at], check.name)) {
                check.check();
                std::printf("%s is right\n", check.name);
            }
    return 0;
}
