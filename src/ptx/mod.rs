//! The PTX this crate was built with: one module for every GPU from [`TARGET`] on.
//!
//! `build.rs` supplies it, from the committed copy or from `kernels/`, and checks its entries against
//! [`abi::ENTRIES`](crate::abi::ENTRIES).

/// The module's text.
pub const TEXT: &str = include_str!(env!("WARPSTRIDE_PTX"));

/// Where it came from: `prebuilt` or `built from source`, the compiler, the target and the sources' hash.
pub const PROVENANCE: &str = env!("WARPSTRIDE_PTX_PROVENANCE");

/// The oldest architecture that it runs on; the driver compiles it for later ones.
pub const TARGET: &str = env!("WARPSTRIDE_PTX_TARGET");
