//! The I/O and clock seam: operating system, memory, fault injection.
