//! Standard input as rows of COPY, which can be cancelled while it waits for them.
//!
//! Invariant: what has been read and not been asked for stays, for the statement that comes next.

use std::io::{BufRead, Error, ErrorKind, Read, Result};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

const CHUNK_BYTES: usize = 64 << 10;
/// How long a statement does not look whether it was cancelled.
const PATIENCE: Duration = Duration::from_millis(50);

/// Standard input, read by a thread of its own: a read that waits for whoever writes there ends for nobody else.
pub(super) struct Input {
    chunks: Receiver<Result<Vec<u8>>>,
    chunk: Vec<u8>,
    at: usize,
    is_over: bool,
}

impl Input {
    pub(super) fn begin() -> Result<Input> {
        // One chunk is read ahead.
        let (sender, chunks) = sync_channel(1);
        thread::Builder::new().name("stdin".into()).spawn(move || {
            loop {
                let mut chunk = vec![0; CHUNK_BYTES];
                let read = std::io::stdin().read(&mut chunk).map(|len| {
                    chunk.truncate(len);
                    chunk
                });
                let is_last = match &read {
                    Ok(chunk) => chunk.is_empty(),
                    Err(error) => error.kind() != ErrorKind::Interrupted,
                };
                if sender.send(read).is_err() || is_last {
                    return;
                }
            }
        })?;
        Ok(Input { chunks, chunk: Vec::new(), at: 0, is_over: false })
    }
}

impl Read for Input {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let some = self.fill_buf()?;
        let len = some.len().min(out.len());
        out[..len].copy_from_slice(&some[..len]);
        self.consume(len);
        Ok(len)
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> Result<&[u8]> {
        if self.at == self.chunk.len() && !self.is_over {
            match self.chunks.recv_timeout(PATIENCE) {
                Ok(read) => (self.chunk, self.at) = (read?, 0),
                // Whoever asks looks whether it is to end, and asks again.
                Err(RecvTimeoutError::Timeout) => return Err(Error::from(ErrorKind::Interrupted)),
                Err(RecvTimeoutError::Disconnected) => (self.chunk, self.at) = (Vec::new(), 0),
            }
            self.is_over = self.chunk.is_empty();
        }
        Ok(&self.chunk[self.at..])
    }

    fn consume(&mut self, len: usize) {
        self.at = self.chunk.len().min(self.at + len);
    }
}
