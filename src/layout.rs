//! Shape/stride algebra.
