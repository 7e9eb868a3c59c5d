//! Views of device buffers.
