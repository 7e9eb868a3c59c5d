//! How far an operation is from what the device can do.
