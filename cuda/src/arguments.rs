//! The pointers of a C call, as types that are read and written safely.
//!
//! A value of these types comes from a caller of the C API and from nowhere else: they have no
//! constructor. Each exported function is `unsafe`, and its caller promises that every pointer is
//! null, or valid for the use that the function's documentation names, for the length of the call.
//! Null is an error here and never followed. Handles are numbers here: see `handles.rs`.

use crate::code::{Failure, Outcome};
use std::ffi::{CStr, c_char};
use std::marker::PhantomData;

/// A place for one result.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

/// One operand behind a pointer, or the first of a list.
#[repr(transparent)]
pub(crate) struct In<T>(*const T);

/// A text that ends in NUL.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Text(*const c_char);

/// Memory of the caller, which this library passes on, or keeps for the caller.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Opaque(pub(crate) *mut u8);

// SAFETY: the pointer is a number here; the functions that follow it say why they may.
unsafe impl Send for Opaque {}
// SAFETY: as above.
unsafe impl Sync for Opaque {}

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<T> {}

fn null(what: &str) -> Failure {
    Failure::value(format!("the pointer to {what} is null; pass the address of one"))
}

impl<T> Out<T> {
    pub(crate) const NULL: Self = Self(std::ptr::null_mut());

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Refuses null, before a call does something that it would have to undo.
    pub(crate) fn check(self) -> Outcome {
        if self.0.is_null() { Err(null("the result")) } else { Ok(()) }
    }

    /// Writes the result.
    pub(crate) fn set(self, value: T) -> Outcome {
        self.check()?;
        // SAFETY: the caller of the C function promises a pointer that is valid for writes of one
        // result.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Writes the result, if the caller wants it.
    pub(crate) fn set_if_wanted(self, value: T) {
        let _ = self.set(value);
    }

    /// Writes results one after the other; the caller's `room` is the number of its places.
    pub(crate) fn set_all(self, values: impl IntoIterator<Item = T>, room: usize) -> Outcome {
        for (number, value) in values.into_iter().take(room).enumerate() {
            self.check()?;
            // SAFETY: the caller of the C function promises places for `room` results.
            let place = unsafe { self.0.add(number) };
            // SAFETY: as above.
            unsafe { place.write_unaligned(value) };
        }
        Ok(())
    }

    /// Reads what stands there, where a call has a value that goes both ways.
    pub(crate) fn get(self) -> Outcome<T>
    where
        T: Copy,
    {
        In(self.0.cast_const()).get()
    }
}

impl<T: Copy> In<T> {
    pub(crate) const NULL: Self = Self(std::ptr::null());

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Reads the operand.
    pub(crate) fn get(self) -> Outcome<T> {
        if self.0.is_null() {
            return Err(null("an operand"));
        }
        // SAFETY: the caller of the C function promises a pointer that is valid for reads of one
        // operand.
        Ok(unsafe { self.0.read_unaligned() })
    }

    /// Reads `count` operands.
    pub(crate) fn list(self, count: usize) -> Outcome<Vec<T>> {
        if count > 0 && self.0.is_null() {
            return Err(null("a list"));
        }
        if count > MOST_LISTED {
            return Err(Failure::value(format!("a list has {count} operands, and at most {MOST_LISTED} are read")));
        }
        let item = |number| {
            // SAFETY: the caller of the C function promises `count` operands.
            let place = unsafe { self.0.add(number) };
            // SAFETY: as above.
            unsafe { place.read_unaligned() }
        };
        Ok((0..count).map(item).collect())
    }
}

/// The most operands of a list: far beyond what programs pass, and less than memory holds.
const MOST_LISTED: usize = 1 << 24;

impl Text {
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Reads the text.
    pub(crate) fn get<'a>(self) -> Outcome<&'a CStr> {
        if self.0.is_null() {
            return Err(null("a text"));
        }
        // SAFETY: the caller of the C function promises a text that ends in NUL, for the length of
        // the call; no function keeps it.
        Ok(unsafe { CStr::from_ptr(self.0) })
    }

    /// Reads the text, with marks in place of what is not UTF-8.
    pub(crate) fn string(self) -> Outcome<String> {
        Ok(self.get()?.to_string_lossy().into_owned())
    }
}

impl Opaque {
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn address(self) -> u64 {
        self.0.expose_provenance() as u64
    }

    /// Makes it of an address that a caller passed as a number.
    pub(crate) fn at(address: u64) -> Self {
        Self(std::ptr::with_exposed_provenance_mut(address as usize))
    }

    /// Reads the bytes at an offset, of memory that the caller promises.
    pub(crate) fn read_at(self, offset: usize, out: &mut [u8]) {
        let place = self.0.wrapping_add(offset).cast_const();
        // SAFETY: the caller of the C function promises the bytes until its work has run.
        unsafe { std::ptr::copy(place, out.as_mut_ptr(), out.len()) };
    }

    /// Writes the bytes at an offset, of memory that the caller promises.
    pub(crate) fn write_at(self, offset: usize, bytes: &[u8]) {
        let place = self.0.wrapping_add(offset);
        // SAFETY: the caller of the C function promises the bytes until its work has run.
        unsafe { std::ptr::copy(bytes.as_ptr(), place, bytes.len()) };
    }

    /// Returns the caller's memory as a list of operands.
    pub(crate) fn operands<T>(self) -> In<T> {
        In(self.0.cast_const().cast())
    }

    /// Returns the caller's memory as a place for results.
    pub(crate) fn results<T>(self) -> Out<T> {
        Out(self.0.cast())
    }

    /// Returns the caller's memory as a text that ends in NUL.
    pub(crate) fn text(self) -> Text {
        Text(self.0.cast_const().cast())
    }

    /// Reads `count` bytes.
    pub(crate) fn bytes(self, count: usize) -> Outcome<Vec<u8>> {
        let mut bytes = Vec::new();
        if count > 0 && self.0.is_null() {
            return Err(null("bytes"));
        }
        bytes.try_reserve_exact(count).map_err(|_| {
            Failure::new(
                crate::code::code::OUT_OF_MEMORY,
                format!("the host has too little memory for a copy of {count} B"),
            )
        })?;
        if count > 0 {
            // SAFETY: the caller of the C function promises so many bytes, and the vector has room
            // for them.
            unsafe { std::ptr::copy_nonoverlapping(self.0.cast_const(), bytes.as_mut_ptr(), count) };
            // SAFETY: they were just written.
            unsafe { bytes.set_len(count) };
        }
        Ok(bytes)
    }
}

/// A handle that names a `T`: a number, whatever C calls it.
#[repr(transparent)]
pub(crate) struct Handle<T>(pub(crate) u64, PhantomData<fn(T)>);

impl<T> Handle<T> {
    pub(crate) const NULL: Self = Self::new(0);

    pub(crate) const fn new(number: u64) -> Self {
        Self(number, PhantomData)
    }

    pub(crate) fn is_null(self) -> bool {
        self.0 == 0
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> PartialEq for Handle<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> std::fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
