//! Buffer pools, mini-transactions, B+tree, table spaces, catalog.
