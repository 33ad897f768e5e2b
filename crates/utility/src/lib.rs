//! LOAD, REORG, check, print and the other utilities.
