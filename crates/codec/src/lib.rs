//! Compression codecs: pure functions on the caller's buffers.
