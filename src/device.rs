//! Opening a device.
