//! A driver that records calls and injects failures.
