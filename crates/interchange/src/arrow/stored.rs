//! An Arrow schema as bytes in the catalog: an Arrow IPC schema message.

use crate::InterchangeError;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_schema::{Schema as ArrowSchema, SchemaRef};
use std::panic::catch_unwind;
use std::sync::Arc;

/// The bytes of an Arrow schema, metadata included.
#[must_use]
pub fn arrow_schema_to_bytes(schema: &ArrowSchema) -> Vec<u8> {
    let mut dictionaries = DictionaryTracker::new(false);
    IpcDataGenerator::default().schema_to_bytes_with_dictionary_tracker(schema, &mut dictionaries, &IpcWriteOptions::default()).ipc_message
}

/// The Arrow schema of these bytes.
///
/// # Errors
/// [`InterchangeError::Arrow`] or [`InterchangeError::Mismatch`] when the bytes are none.
pub fn arrow_schema_from_bytes(bytes: &[u8]) -> Result<SchemaRef, InterchangeError> {
    // The library panics on type numbers that it does not know.
    let decoded = catch_unwind(|| arrow_ipc::convert::try_schema_from_flatbuffer_bytes(bytes));
    let damaged = |_| InterchangeError::Mismatch("the stored Arrow schema is damaged".to_owned());
    Ok(Arc::new(decoded.map_err(damaged)??))
}
