//! Calls of functions of the library, whose operands have the types of C.

use std::ffi::c_void;

/// Calls a function of the library, and returns its code.
macro_rules! call {
    ($name:ident($($value:expr),* $(,)?)) => {{
        // SAFETY: the operands have the types of the declaration in `cuda.h`.
        let function = unsafe {
            $crate::api::library().get::<unsafe extern "C" fn($($crate::calls::any!($value)),*) -> u32>(stringify!($name))
        };
        let function = function.expect(stringify!($name));
        // SAFETY: the pointers among the operands are null, or valid for this call and its work.
        unsafe { function($($value),*) }
    }};
}
pub(crate) use call;

/// A type that follows from the operand.
macro_rules! any {
    ($value:expr) => {
        _
    };
}
pub(crate) use any;

/// Calls a function that has to succeed.
macro_rules! ok {
    ($name:ident($($value:expr),* $(,)?)) => {
        assert_eq!($crate::calls::call!($name($($value),*)), 0, stringify!($name))
    };
}
pub(crate) use ok;

/// Allocates memory with these values.
pub(crate) fn upload(values: &[i32]) -> u64 {
    let mut address = 0_u64;
    ok!(cuMemAlloc_v2(&raw mut address, size_of_val(values)));
    ok!(cuMemcpyHtoD_v2(address, values.as_ptr().cast::<c_void>(), size_of_val(values)));
    address
}

/// Returns values of the device's memory.
pub(crate) fn download(address: u64, count: usize) -> Vec<i32> {
    let mut values = vec![0; count];
    ok!(cuMemcpyDtoH_v2(values.as_mut_ptr().cast::<c_void>(), address, count * size_of::<i32>()));
    values
}
