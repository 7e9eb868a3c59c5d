//! Device memory that knows its element type.
