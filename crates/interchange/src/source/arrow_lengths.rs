//! Lengths that an Arrow file says of itself, looked at before they are believed: the library makes room for a message before it reads it.
//!
//! Layouts: "IPC Streaming Format" and "IPC File Format" of the Arrow columnar specification.
//!
//! Invariant: of a file that passes, no message is longer than what the file has behind its beginning; none has a negative length, or buffers that are compressed.

use arrow_ipc::{Block, MessageHeader, root_as_footer, root_as_message};
use pagefold_io::{File, read_exact_at};

/// Behind the footer of a file: its length, and the magic.
const TAIL_BYTES: u64 = 10;
/// What a message begins with since version 0.15 of the format.
const CONTINUATION: [u8; 4] = [0xFF; 4];

type Checked<T> = Result<T, String>;

fn bytes_at(file: &dyn File, bytes: u64, at: u64, count: u64) -> Checked<Vec<u8>> {
    if at.checked_add(count).is_none_or(|end| end > bytes) {
        return Err(format!("{count} bytes at {at} of a file of {bytes}"));
    }
    let mut found = vec![0; usize::try_from(count).map_err(|e| e.to_string())?];
    read_exact_at(file, &mut found, at).map_err(|e| e.to_string())?;
    Ok(found)
}

/// What a message says of itself; how long its body is.
fn check_message(metadata: &[u8]) -> Checked<u64> {
    let message = root_as_message(metadata).map_err(|e| format!("a message that is none: {e}"))?;
    let batch = match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch(),
        MessageHeader::DictionaryBatch => message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data()),
        _ => None,
    };
    if let Some(batch) = batch {
        if batch.length() < 0 {
            return Err(format!("a batch of {} rows", batch.length()));
        }
        if batch.compression().is_some() {
            return Err("its buffers are compressed (LZ4 or ZSTD), which is not read; write it without compression".to_owned());
        }
    }
    u64::try_from(message.bodyLength()).map_err(|_| format!("a message of {} bytes", message.bodyLength()))
}

/// The length and metadata of a message at some place: the length of what stands before the metadata, and these. `None`: the end of a stream.
fn message_at(file: &dyn File, bytes: u64, at: u64) -> Checked<Option<(u64, Vec<u8>)>> {
    let mut before = 4;
    let mut length: [u8; 4] = bytes_at(file, bytes, at, 4)?.try_into().unwrap_or_default();
    if length == CONTINUATION {
        before = 8;
        length = bytes_at(file, bytes, at + 4, 4)?.try_into().unwrap_or_default();
    }
    let length = u64::try_from(i32::from_le_bytes(length)).map_err(|_| "metadata of a negative length".to_owned())?;
    if length == 0 {
        return Ok(None);
    }
    Ok(Some((before, bytes_at(file, bytes, at + before, length)?)))
}

fn check_block(file: &dyn File, bytes: u64, block: &Block) -> Checked<()> {
    let wrong =
        || format!("a block of {} and {} bytes at {}, in a file of {bytes}", block.metaDataLength(), block.bodyLength(), block.offset());
    let lengths = (u64::try_from(block.offset()), u64::try_from(block.metaDataLength()), u64::try_from(block.bodyLength()));
    let (Ok(offset), Ok(metadata), Ok(body)) = lengths else { return Err(wrong()) };
    let end = offset.checked_add(metadata).and_then(|end| end.checked_add(body));
    if end.is_none_or(|end| end > bytes) {
        return Err(wrong());
    }
    match message_at(file, bytes, offset)? {
        Some((_, metadata)) => check_message(&metadata).map(drop),
        None => Err(wrong()),
    }
}

/// A file with a footer.
pub(super) fn check_file(file: &dyn File, bytes: u64) -> Checked<()> {
    let tail_at = bytes.checked_sub(TAIL_BYTES).ok_or("it is too short")?;
    let tail = bytes_at(file, bytes, tail_at, TAIL_BYTES)?;
    let length = i32::from_le_bytes(tail[..4].try_into().unwrap_or_default());
    let footer_at =
        u64::try_from(length).ok().and_then(|length| tail_at.checked_sub(length)).ok_or(format!("a footer of {length} bytes"))?;
    let footer = bytes_at(file, bytes, footer_at, tail_at - footer_at)?;
    let footer = root_as_footer(&footer).map_err(|e| format!("a footer that is none: {e}"))?;
    for blocks in [footer.dictionaries(), footer.recordBatches()].into_iter().flatten() {
        blocks.iter().try_for_each(|block| check_block(file, bytes, block))?;
    }
    Ok(())
}

/// A stream: messages up to one without length, or to the end of the file.
pub(super) fn check_stream(file: &dyn File, bytes: u64) -> Checked<()> {
    let mut at = 0;
    while at < bytes {
        let Some((before, metadata)) = message_at(file, bytes, at)? else { return Ok(()) };
        let body = check_message(&metadata)?;
        let end = (at + before + metadata.len() as u64).checked_add(body);
        at = end.filter(|end| *end <= bytes).ok_or(format!("a message at {at} with a body of {body} bytes, in a file of {bytes}"))?;
    }
    Ok(())
}
