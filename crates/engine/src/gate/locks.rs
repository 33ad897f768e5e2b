//! The lock `gate`: shared by those who write pages, held alone by a reader that registers; and how nobody waits long for one of them that was stopped.
//!
//! Who has waited for [`PATIENCE`] begins a new gate: `gate.1` after `gate`, and so on. The newest counts. A reader that was overtaken so finds out when it is done, and
//! registers anew; one that stays stopped keeps nobody else from anything.
//!
//! Invariants:
//! - whoever has locked a gate looks whether it is still the newest before it relies on it;
//! - a reader that has the newest gate alone relies on it only when nobody shares an older one: who has it alone there is a reader that was overtaken, and writes nothing;
//! - a gate is removed only by who has it alone and has the newest one alone, too;
//! - `turn` is for fairness only: that of a gate goes with it.

use crate::{Error, Result};
use pagefold_io::{Lock, LockKind, OpenOptions, Storage};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// So long somebody waits for who has a lock, before it begins a new gate. Who has it needs moments, when it is running.
const PATIENCE: Duration = Duration::from_millis(1500);
/// More new gates than this are not begun in a row: then something else is wrong.
const GATES_IN_A_ROW: u32 = 4;

/// The numbers of what is in the folder of the readers.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) paths: Vec<PathBuf>,
    gates: Vec<u32>,
}

impl Listed {
    fn read(storage: &dyn Storage, readers: &Path) -> Result<Listed> {
        let paths = storage.list(readers)?;
        let gates = paths.iter().filter_map(|path| number_of(path)).collect();
        Ok(Listed { paths, gates })
    }

    fn newest(&self) -> u32 {
        self.gates.iter().copied().max().unwrap_or(0)
    }
}

/// A lock of the newest gate.
#[derive(Debug)]
pub(crate) struct GateLock {
    number: u32,
    _lock: Box<dyn Lock>,
}

fn number_of(path: &Path) -> Option<u32> {
    match path.file_name()?.to_str()? {
        "gate" => Some(0),
        name => name.strip_prefix("gate.")?.parse().ok(),
    }
}

fn name(kind: &str, number: u32) -> String {
    if number == 0 { kind.into() } else { format!("{kind}.{number}") }
}

/// A lock within the patience of who waits; `None` when somebody has it for longer.
fn within_patience(storage: &dyn Storage, path: &Path, kind: LockKind) -> Result<Option<Box<dyn Lock>>> {
    match storage.lock_within(path, kind, PATIENCE) {
        Err(error) if error.kind() == ErrorKind::TimedOut => Ok(None),
        taken => Ok(Some(taken?)),
    }
}

/// Begins a new gate, unless somebody was faster.
fn begin_next(storage: &dyn Storage, readers: &Path, number: u32) -> Result<()> {
    match storage.open(&readers.join(name("gate", number + 1)), &OpenOptions::create_new()) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error.into()),
        _ => Ok(()),
    }
}

/// What somebody is told who does not get through.
fn held(storage: &dyn Storage, readers: &Path, path: &Path, what: &str) -> Error {
    let database = readers.parent().unwrap_or(readers).display();
    let who = storage.lock_holder(path).unwrap_or_else(|| "another process".into());
    Error::Busy(format!("{database}: {who} {what} ({})", path.display()))
}

/// A gate that is locked, of the number that was the newest one. `None` when there is a newer one by now.
fn try_gate(storage: &dyn Storage, readers: &Path, number: u32, kind: LockKind) -> Result<Option<Box<dyn Lock>>> {
    let Some(turn) = within_patience(storage, &readers.join(name("turn", number)), LockKind::Exclusive)? else {
        begin_next(storage, readers, number)?;
        return Ok(None);
    };
    let path = readers.join(name("gate", number));
    let gate = within_patience(storage, &path, kind)?;
    if gate.is_none() {
        // Those who share it are at work on pages: nobody goes past them.
        if kind == LockKind::Exclusive
            && let Ok(shared) = storage.lock_within(&path, LockKind::Shared, Duration::ZERO)
        {
            drop(shared);
            return match within_patience(storage, &path, kind)? {
                None => Err(held(storage, readers, &path, "has begun to write pages and does not go on: no reader can begin meanwhile")),
                gate => Ok(gate),
            };
        }
        begin_next(storage, readers, number)?;
    }
    drop(turn);
    Ok(gate)
}

/// Shares the newest gate; `known` is the number of the newest one that was seen.
pub(super) fn share(storage: &dyn Storage, readers: &Path, known: &AtomicU32) -> Result<(GateLock, Listed)> {
    let first = known.load(Ordering::Relaxed);
    let mut number = first;
    loop {
        let lock = try_gate(storage, readers, number, LockKind::Shared)?;
        let listed = Listed::read(storage, readers)?;
        let newest = listed.newest();
        known.fetch_max(newest, Ordering::Relaxed);
        match lock {
            Some(lock) if newest <= number => return Ok((GateLock { number, _lock: lock }, listed)),
            _ if number > first.saturating_add(GATES_IN_A_ROW) => return Err(stuck(storage, readers, number)),
            _ => number = newest,
        }
    }
}

/// Takes the newest gate alone, with nobody at work behind an older one.
pub(crate) fn take_alone(storage: &dyn Storage, readers: &Path) -> Result<(GateLock, Listed)> {
    let mut first = None;
    loop {
        let number = Listed::read(storage, readers)?.newest();
        if number > first.get_or_insert(number).saturating_add(GATES_IN_A_ROW) {
            return Err(stuck(storage, readers, number));
        }
        let Some(lock) = try_gate(storage, readers, number, LockKind::Exclusive)? else { continue };
        let listed = Listed::read(storage, readers)?;
        if listed.newest() > number {
            continue;
        }
        for older in listed.gates.iter().filter(|older| **older < number) {
            let path = readers.join(name("gate", *older));
            match storage.lock_within(&path, LockKind::Exclusive, Duration::ZERO) {
                Ok(older_lock) => {
                    for kind in ["gate", "turn"] {
                        remove_if_there(storage, &readers.join(name(kind, *older)))?;
                    }
                    drop(older_lock);
                }
                Err(error) if error.kind() == ErrorKind::TimedOut => wait_for_sharers(storage, readers, &path)?,
                Err(error) => return Err(error.into()),
            }
        }
        return Ok((GateLock { number, _lock: lock }, listed));
    }
}

/// Waits for those who share an older gate; not for a reader that has it alone.
fn wait_for_sharers(storage: &dyn Storage, readers: &Path, path: &Path) -> Result<()> {
    match storage.lock_within(path, LockKind::Shared, Duration::ZERO) {
        Ok(shared) => drop(shared),
        Err(error) if error.kind() == ErrorKind::TimedOut => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    match within_patience(storage, path, LockKind::Exclusive)? {
        Some(_) => Ok(()),
        None => Err(held(storage, readers, path, "has begun to write pages and does not go on: no reader can begin meanwhile")),
    }
}

fn stuck(storage: &dyn Storage, readers: &Path, number: u32) -> Error {
    held(storage, readers, &readers.join(name("gate", number)), "has what readers and writers pass, and does not give it back")
}

/// Is this gate, which somebody has alone, still the newest? If not, what was done behind it counts for nothing.
pub(crate) fn is_newest(storage: &dyn Storage, readers: &Path, gate: &GateLock) -> Result<bool> {
    Ok(Listed::read(storage, readers)?.newest() <= gate.number)
}

/// Removes a file that others may remove at the same time.
pub(crate) fn remove_if_there(storage: &dyn Storage, path: &Path) -> Result<()> {
    match storage.remove(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
