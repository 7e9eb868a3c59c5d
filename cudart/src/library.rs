//! Libraries that a program loads itself.

use std::ffi::c_uint;

use crate::arguments::{Opaque, Out, Text};
use crate::context;
use crate::driver::{driver, forward};
use crate::export::export;
use crate::registry::note_kernel;
use crate::types::{Kernel, Library};

driver! {
    fn cuLibraryGetKernel(kernel: &mut Kernel, library: Library, name: Text);
    fn cuLibraryEnumerateKernels(kernels: Out<Kernel>, room: c_uint, library: Library);
    fn cuLibraryGetKernelCount(count: &mut c_uint, library: Library);
}

forward! {
    /// Loads a library from an image in memory.
    fn cudaLibraryLoadData(
        library: Out<Library>, image: Opaque, options: Opaque, values: Opaque, count: c_uint, library_options: Opaque,
        library_values: Opaque, library_count: c_uint,
    ) = cuLibraryLoadData;
    /// Loads a library from a file.
    fn cudaLibraryLoadFromFile(
        library: Out<Library>, path: Text, options: Opaque, values: Opaque, count: c_uint, library_options: Opaque,
        library_values: Opaque, library_count: c_uint,
    ) = cuLibraryLoadFromFile;
    /// Unloads a library.
    fn cudaLibraryUnload(library: Library) = cuLibraryUnload;
    /// Finds a variable of a library.
    fn cudaLibraryGetGlobal(address: Out<Opaque>, bytes: Out<usize>, library: Library, name: Text) = cuLibraryGetGlobal;
    /// Finds a managed variable of a library.
    fn cudaLibraryGetManaged(address: Out<Opaque>, bytes: Out<usize>, library: Library, name: Text)
        = cuLibraryGetManaged;
    /// Finds a function that host and device call by the same pointer.
    fn cudaLibraryGetUnifiedFunction(function: Out<Opaque>, library: Library, name: Text)
        = cuLibraryGetUnifiedFunction;
    /// Returns the number of kernels of a library.
    fn cudaLibraryGetKernelCount(count: Out<c_uint>, library: Library) = cuLibraryGetKernelCount;
}

export! {
    /// Finds a kernel of a library.
    fn cudaLibraryGetKernel(out: Out<Kernel>, library: Library, name: Text) {
        out.check()?;
        context::ready()?;
        let mut kernel = Kernel::NULL;
        cuLibraryGetKernel(&mut kernel, library, name)?;
        note_kernel(kernel);
        out.set(kernel)
    }

    /// Lists kernels of a library, at most as many as there is room for.
    fn cudaLibraryEnumerateKernels(out: Opaque, room: c_uint, library: Library) {
        context::ready()?;
        let mut count = 0;
        cuLibraryGetKernelCount(&mut count, library)?;
        cuLibraryEnumerateKernels(out.results(), room, library)?;
        for kernel in out.operands::<Kernel>().list(room.min(count) as usize)? {
            note_kernel(kernel);
        }
        Ok(())
    }
}
