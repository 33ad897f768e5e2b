//! `pagefold top`

use crate::arguments::TopArguments;
use crate::failure::{Failure, Result};
use crate::progress;
use crate::session::{Session, stdout};
use pagefold::engine::{LIVE_INTERVAL, Onlooker};
use pagefold::io::{Clock, OsClock, OsStorage, Storage};
use pagefold::types::{DataType, TimeUnit, Value, text};
use pagefold::utility::LiveFrame;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

/// Between two looks at the file.
const LOOK: Duration = Duration::from_millis(50);
/// What is older than this is old: the process writes once a second.
const STALE: Duration = Duration::from_secs(5);
/// Home, and what is below; so nothing flickers.
const HOME: &str = "\x1b[H";
const END_OF_LINE: &str = "\x1b[K\n";
const CLEAR_BELOW: &str = "\x1b[J";
const CLEAR: &str = "\x1b[2J";

/// A view with the time at which it was written.
struct Seen {
    text: String,
    unix_time_ns: u64,
}

pub(super) fn run(session: &Session, arguments: &TopArguments) -> Result<()> {
    let directory = &arguments.database;
    if !OsStorage.exists(&directory.join("control"))? {
        return Err(Failure::Failed(format!("{} is not a database", directory.display())));
    }
    let (storage, clock): (Arc<dyn Storage>, Arc<dyn Clock>) = (Arc::new(OsStorage), Arc::new(OsClock));
    let mut onlooker = Onlooker::ask(&storage, &clock, directory)?;
    if arguments.once || session.global.json || arguments.prometheus {
        return once(session, arguments, &mut onlooker);
    }
    // Ctrl-C is how it ends.
    progress::begin_changes();
    let draws = std::io::stdout().is_terminal();
    let mut before: Option<LiveFrame> = None;
    let mut cleared = false;
    loop {
        let seen = next(&mut onlooker, before.as_ref().map_or(0, |frame| (frame.time_s * 1e9) as u64))?;
        let mut screen = format!("pagefold top {}  {}\n", directory.display(), time_text(OsClock.unix_time()));
        match &seen {
            Some(seen) => {
                let frame = LiveFrame::of(&seen.text, seen.unix_time_ns as f64 / 1e9);
                screen += &format!("\n{}", frame.to_text(before.as_ref()));
                before = Some(frame);
            }
            None => screen += &format!("\n{}\n", nobody(directory, &onlooker)),
        }
        let mut out = stdout();
        if draws {
            let first = if std::mem::replace(&mut cleared, true) { "" } else { CLEAR };
            write!(out, "{first}{HOME}{}{CLEAR_BELOW}", screen.replace('\n', END_OF_LINE))?;
        } else {
            writeln!(out, "{screen}")?;
        }
        out.flush()?;
        let until = OsClock.monotonic() + arguments.interval.max(LIVE_INTERVAL);
        while OsClock.monotonic() < until {
            if progress::interrupted() {
                return Ok(());
            }
            OsClock.sleep(LOOK);
        }
    }
}

/// One view, or with rates two.
fn once(session: &Session, arguments: &TopArguments, onlooker: &mut Onlooker) -> Result<()> {
    let directory = &arguments.database;
    let first = next(onlooker, 0)?.ok_or_else(|| Failure::Failed(nobody(directory, onlooker)))?;
    if arguments.prometheus {
        return session.print(&first.text);
    }
    let before = LiveFrame::of(&first.text, first.unix_time_ns as f64 / 1e9);
    OsClock.sleep(arguments.interval.saturating_sub(LIVE_INTERVAL));
    let second = next(onlooker, first.unix_time_ns)?.ok_or_else(|| Failure::Failed(nobody(directory, onlooker)))?;
    let frame = LiveFrame::of(&second.text, second.unix_time_ns as f64 / 1e9);
    match session.global.json {
        true => session.print_json(&frame.to_json(Some(&before))),
        false => session.print(&frame.to_text(Some(&before))),
    }
}

/// Waits for a view that is newer than this; `None` when none comes for so long that it is an old one.
fn next(onlooker: &mut Onlooker, than_ns: u64) -> Result<Option<Seen>> {
    let began = OsClock.monotonic();
    let mut asked_again = false;
    loop {
        if let Some(view) = onlooker.look()?
            // Nanoseconds as seconds lose some.
            && view.unix_time_ns > than_ns.saturating_add(LOOK.as_nanos() as u64)
        {
            return Ok(Some(Seen { text: view.text.clone(), unix_time_ns: view.unix_time_ns }));
        }
        let waited = OsClock.monotonic().saturating_sub(began);
        if waited >= STALE || progress::interrupted() {
            return Ok(None);
        }
        // The file may have been taken for one that nobody holds.
        if waited >= STALE / 2 && !asked_again {
            asked_again = true;
            onlooker.ask_again()?;
        }
        OsClock.sleep(LOOK);
    }
}

/// Why there is nothing to be seen, as far as that is known.
fn nobody(directory: &std::path::Path, onlooker: &Onlooker) -> String {
    let holder = OsStorage.lock_holder(&directory.join("lock"));
    let age = onlooker.age().as_secs();
    match holder {
        Some(holder) => format!("{} is being written by {holder}, which has shown nothing for {age} s", directory.display()),
        None => format!("no process has {} open for writing; nothing has been shown for {age} s", directory.display()),
    }
}

fn time_text(time: Duration) -> String {
    let seconds = Value::Int(i64::try_from(time.as_secs()).unwrap_or_default());
    text::to_text(seconds.as_ref(), &DataType::Timestamp { unit: TimeUnit::Second, with_zone: false }) + " UTC"
}
