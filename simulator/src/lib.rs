//! Plays what stands around the function.
