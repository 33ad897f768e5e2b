//! `pagefold top`

use crate::arguments::TopArguments;
use crate::failure::{Failure, Result};
use crate::progress;
use crate::session::{Session, stdout};
use pagefold::engine::{LIVE_INTERVAL, Onlooker, control_path, lock_path};
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

/// A view with the time at which it was written, and by whom.
struct Seen {
    text: String,
    unix_time_ns: u64,
    opening: u128,
}

impl Seen {
    fn frame(&self) -> LiveFrame {
        LiveFrame::of(&self.text, self.unix_time_ns as f64 / 1e9)
    }
}

pub(super) fn run(session: &Session, arguments: &TopArguments) -> Result<()> {
    let directory = &arguments.database;
    if !OsStorage.exists(&control_path(directory))? {
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
    let mut before: Option<Seen> = None;
    let mut cleared = false;
    loop {
        let seen = next(&mut onlooker, before.as_ref().map_or(0, |before| before.unix_time_ns))?;
        let mut screen = format!("pagefold top {}  {}\n", directory.display(), time_text(OsClock.unix_time()));
        match seen {
            Some(seen) => {
                screen += &format!("\n{}", seen.frame().to_text(frame_before(before.as_ref(), &seen).as_ref()));
                before = Some(seen);
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
    OsClock.sleep(arguments.interval.saturating_sub(LIVE_INTERVAL));
    let second = next(onlooker, first.unix_time_ns)?.ok_or_else(|| Failure::Failed(nobody(directory, onlooker)))?;
    let (frame, before) = (second.frame(), frame_before(Some(&first), &second));
    match session.global.json {
        true => session.print_json(&frame.to_json(before.as_ref())),
        false => session.print(&frame.to_text(before.as_ref())),
    }
}

/// What rates are of: the frame before, unless the database was opened again since, and counts from 0.
fn frame_before(before: Option<&Seen>, now: &Seen) -> Option<LiveFrame> {
    before.filter(|before| before.opening == now.opening).map(Seen::frame)
}

/// Waits for a view that is newer than this; `None` when none comes for so long that it is an old one.
fn next(onlooker: &mut Onlooker, than_ns: u64) -> Result<Option<Seen>> {
    let began = OsClock.monotonic();
    let mut asked_again = false;
    loop {
        if let Some(view) = onlooker.look()?
            && view.unix_time_ns > than_ns
        {
            return Ok(Some(Seen { text: view.text.clone(), unix_time_ns: view.unix_time_ns, opening: view.opening }));
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
    let holder = OsStorage.lock_holder(&lock_path(directory));
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
