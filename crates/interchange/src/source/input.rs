//! One file to read, whatever it is wrapped in: standard input and compressed files are unpacked into a temporary file without name, as text is read twice and samples seek.

use crate::InterchangeError;
use pagefold_io::{File, FileReader, FileWriter, OpenOptions, Storage, read_exact_at};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The name that stands for standard input.
pub const STANDARD_INPUT: &str = "-";

/// What is in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Parquet,
    /// Arrow IPC, as a file or a stream
    Arrow,
    /// One JSON object a line
    Json,
    Text,
}

/// A file that is ready to be read from anywhere.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    /// As the user named it, for messages
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
    pub(crate) bytes: u64,
    pub(crate) compression: Option<&'static str>,
    pub(crate) kind: FileKind,
    /// Lower-case, without that of the compression
    pub(crate) extension: String,
}

const BUFFER_BYTES: usize = 1 << 20;

/// A new file that nobody else sees and that is gone with its handle.
fn scratch(storage: &dyn Storage) -> std::io::Result<Arc<dyn File>> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let directory = std::env::temp_dir();
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("pagefold-{}-{number}.tmp", std::process::id()));
        match storage.open(&path, &OpenOptions::create_new()) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(file) => {
                storage.remove(&path)?;
                return Ok(file);
            }
        }
    }
}

fn unpack(storage: &dyn Storage, path: &Path, from: &mut dyn Read) -> Result<Arc<dyn File>, InterchangeError> {
    let file = scratch(storage)?;
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, FileWriter::at(Arc::clone(&file), 0));
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        // The input's errors name the file, the temporary file's the device.
        let read = match from.read(&mut buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            read => read.map_err(|e| InterchangeError::file(path, format!("cannot be read or unpacked: {e}")))?,
        };
        if read == 0 {
            break;
        }
        out.write_all(&buffer[..read])?;
    }
    out.flush()?;
    Ok(file)
}

fn extension(path: &Path) -> String {
    path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}

/// The first bytes, as many as there are.
fn head<const N: usize>(file: &dyn File) -> Result<[u8; N], InterchangeError> {
    let mut head = [0; N];
    let there = (file.len()?).min(N as u64) as usize;
    read_exact_at(file, &mut head[..there], 0)?;
    Ok(head)
}

impl Input {
    /// Opens a file, or standard input.
    ///
    /// # Errors
    /// When it cannot be read or unpacked, or there is no room to unpack it.
    pub(crate) fn open(storage: &dyn Storage, path: &Path) -> Result<Input, InterchangeError> {
        let (shown, mut file) = if path == Path::new(STANDARD_INPUT) {
            let shown = PathBuf::from("standard input");
            let file = unpack(storage, &shown, &mut std::io::stdin().lock())?;
            (shown, file)
        } else {
            (path.to_owned(), storage.open(path, &OpenOptions::read_only())?)
        };
        let reader = |file: &Arc<dyn File>| BufReader::with_capacity(BUFFER_BYTES, FileReader::new(Arc::clone(file)));
        let mut inner = path.to_owned();
        let mut compression = None;
        match head::<4>(&*file)? {
            [0x1F, 0x8B, 8, _] => {
                compression = Some("gzip");
                file = unpack(storage, &shown, &mut flate2::bufread::MultiGzDecoder::new(reader(&file)))?;
            }
            [0x28, 0xB5, 0x2F, 0xFD] => {
                compression = Some("zstd");
                let mut decoder = zstd::stream::read::Decoder::with_buffer(reader(&file))?;
                file = unpack(storage, &shown, &mut decoder)?;
            }
            _ => {}
        }
        if matches!(extension(&inner).as_str(), "gz" | "gzip" | "zst" | "zstd") {
            inner.set_extension("");
        }
        let extension = extension(&inner);
        let kind = kind(&*file, &extension)?;
        Ok(Input { path: shown, bytes: file.len()?, file, compression, kind, extension })
    }
}

fn kind(file: &dyn File, extension: &str) -> Result<FileKind, InterchangeError> {
    Ok(match extension {
        "parquet" | "pq" => FileKind::Parquet,
        "arrow" | "arrows" | "feather" | "ipc" => FileKind::Arrow,
        "json" | "jsonl" | "ndjson" => FileKind::Json,
        "csv" | "tsv" | "tab" | "tbl" | "txt" => FileKind::Text,
        _ => {
            let head = head::<64>(file)?;
            let text = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&head);
            match text.trim_ascii_start() {
                [b'P', b'A', b'R', b'1', ..] if file.len()? >= 12 => FileKind::Parquet,
                [b'A', b'R', b'R', b'O', b'W', b'1', ..] | [0xFF, 0xFF, 0xFF, 0xFF, ..] => FileKind::Arrow,
                [b'{', ..] => FileKind::Json,
                _ => FileKind::Text,
            }
        }
    })
}
