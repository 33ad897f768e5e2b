//! Embedded, transactional SQL row store, compressed at every level.
