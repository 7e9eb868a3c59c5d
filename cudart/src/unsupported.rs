//! The functions of the runtime that the software GPU does not support.
//!
//! `names-12.txt` and `names-13.txt` list all names of NVIDIA's libraries. The test `names`
//! compares them with what the libraries export, and prints the names to add here.

use crate::export::unsupported;

// In both libraries: arrays, textures and surfaces, memory and semaphores of other APIs and
// processes, and graphics.
#[rustfmt::skip]
unsupported! {
    __cudaRegisterHostVar __cudaRegisterUnifiedTable cudaArrayGetInfo cudaArrayGetMemoryRequirements
    cudaArrayGetPlane cudaArrayGetSparseProperties cudaCreateSurfaceObject cudaCreateTextureObject
    cudaDestroyExternalMemory cudaDestroyExternalSemaphore cudaDestroySurfaceObject cudaDestroyTextureObject
    cudaDeviceFlushGPUDirectRDMAWrites cudaDeviceGetNvSciSyncAttributes cudaDeviceGetTexture1DLinearMaxWidth
    cudaDeviceRegisterAsyncNotification cudaDeviceUnregisterAsyncNotification cudaEGLStreamConsumerAcquireFrame
    cudaEGLStreamConsumerConnect cudaEGLStreamConsumerConnectWithFlags cudaEGLStreamConsumerDisconnect
    cudaEGLStreamConsumerReleaseFrame cudaEGLStreamProducerConnect cudaEGLStreamProducerDisconnect
    cudaEGLStreamProducerPresentFrame cudaEGLStreamProducerReturnFrame cudaEventCreateFromEGLSync
    cudaExternalMemoryGetMappedBuffer cudaExternalMemoryGetMappedMipmappedArray cudaFreeArray cudaFreeMipmappedArray
    cudaGLGetDevices cudaGLMapBufferObject cudaGLMapBufferObjectAsync cudaGLRegisterBufferObject
    cudaGLSetBufferObjectMapFlags cudaGLSetGLDevice cudaGLUnmapBufferObject cudaGLUnmapBufferObjectAsync
    cudaGLUnregisterBufferObject cudaGetChannelDesc cudaGetMipmappedArrayLevel cudaGetSurfaceObjectResourceDesc
    cudaGetTextureObjectResourceDesc cudaGetTextureObjectResourceViewDesc cudaGetTextureObjectTextureDesc
    cudaGraphAddExternalSemaphoresSignalNode cudaGraphAddExternalSemaphoresWaitNode
    cudaGraphExecExternalSemaphoresSignalNodeSetParams cudaGraphExecExternalSemaphoresWaitNodeSetParams
    cudaGraphExternalSemaphoresSignalNodeGetParams cudaGraphExternalSemaphoresSignalNodeSetParams
    cudaGraphExternalSemaphoresWaitNodeGetParams cudaGraphExternalSemaphoresWaitNodeSetParams
    cudaGraphicsEGLRegisterImage cudaGraphicsGLRegisterBuffer cudaGraphicsGLRegisterImage cudaGraphicsMapResources
    cudaGraphicsResourceGetMappedEglFrame cudaGraphicsResourceGetMappedMipmappedArray
    cudaGraphicsResourceGetMappedPointer cudaGraphicsResourceSetMapFlags cudaGraphicsSubResourceGetMappedArray
    cudaGraphicsUnmapResources cudaGraphicsUnregisterResource cudaGraphicsVDPAURegisterOutputSurface
    cudaGraphicsVDPAURegisterVideoSurface cudaImportExternalMemory cudaImportExternalSemaphore cudaIpcCloseMemHandle
    cudaIpcGetEventHandle cudaIpcGetMemHandle cudaIpcOpenEventHandle cudaIpcOpenMemHandle cudaMalloc3DArray
    cudaMallocArray cudaMallocMipmappedArray cudaMemPoolExportPointer cudaMemPoolExportToShareableHandle
    cudaMemPoolImportFromShareableHandle cudaMemPoolImportPointer cudaMemcpy2DArrayToArray
    cudaMemcpy2DArrayToArray_ptds cudaMemcpy2DFromArray cudaMemcpy2DFromArrayAsync cudaMemcpy2DFromArrayAsync_ptsz
    cudaMemcpy2DFromArray_ptds cudaMemcpy2DToArray cudaMemcpy2DToArrayAsync cudaMemcpy2DToArrayAsync_ptsz
    cudaMemcpy2DToArray_ptds cudaMemcpyArrayToArray cudaMemcpyArrayToArray_ptds cudaMemcpyFromArray
    cudaMemcpyFromArrayAsync cudaMemcpyFromArrayAsync_ptsz cudaMemcpyFromArray_ptds cudaMemcpyToArray
    cudaMemcpyToArrayAsync cudaMemcpyToArrayAsync_ptsz cudaMemcpyToArray_ptds
    cudaMipmappedArrayGetMemoryRequirements cudaMipmappedArrayGetSparseProperties cudaSignalExternalSemaphoresAsync
    cudaSignalExternalSemaphoresAsync_ptsz cudaVDPAUGetDevice cudaVDPAUSetVDPAUDevice
    cudaWaitExternalSemaphoresAsync cudaWaitExternalSemaphoresAsync_ptsz
}

/// The functions of CUDA 12 alone.
#[cfg(cuda_12)]
mod of_12 {
    use crate::export::unsupported;

    #[rustfmt::skip]
    unsupported! {
        cudaGetDeviceProperties cudaLaunchCooperativeKernelMultiDevice cudaSignalExternalSemaphoresAsync_v2
        cudaSignalExternalSemaphoresAsync_v2_ptsz cudaWaitExternalSemaphoresAsync_v2
        cudaWaitExternalSemaphoresAsync_v2_ptsz
    }
}

/// The functions of CUDA 13 alone: parts of devices, logs of the driver, and copies with
/// attributes.
#[cfg(not(cuda_12))]
mod of_13 {
    use crate::export::unsupported;

    #[rustfmt::skip]
    unsupported! {
        __cudaGetProcAddress cudaDevResourceGenerateDesc cudaDevSmResourceSplit cudaDevSmResourceSplitByCount
        cudaDeviceGetDevResource cudaDeviceGetExecutionCtx cudaDeviceGetHostAtomicCapabilities
        cudaDeviceGetP2PAtomicCapabilities cudaExecutionCtxDestroy cudaExecutionCtxGetDevResource
        cudaExecutionCtxGetDevice cudaExecutionCtxGetId cudaExecutionCtxRecordEvent cudaExecutionCtxStreamCreate
        cudaExecutionCtxSynchronize cudaExecutionCtxWaitEvent cudaGraphNodeGetParams cudaGreenCtxCreate cudaLogsCurrent
        cudaLogsDumpToFile cudaLogsDumpToMemory cudaLogsRegisterCallback cudaLogsUnregisterCallback
        cudaMemGetLocationInfo cudaMemcpy3DWithAttributesAsync cudaMemcpy3DWithAttributesAsync_ptsz
        cudaMemcpyWithAttributesAsync cudaMemcpyWithAttributesAsync_ptsz cudaStreamBeginRecaptureToGraph
        cudaStreamBeginRecaptureToGraph_ptsz cudaStreamGetDevResource cudaStreamGetDevResource_ptsz cudaSubgridCreate
        cudaSubgridWorkerGridCreate cudaSubgridWorksetCreate
    }
}
