//! Progress bars on standard error, when that is a terminal; and Ctrl-C.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pagefold::utility::{Progress, Unit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Has something begun that is to be taken back?
static CHANGES: AtomicBool = AtomicBool::new(false);

/// From now on there is something to take back when the user wants to stop.
pub(crate) fn begin_changes() {
    CHANGES.store(true, Ordering::Relaxed);
}

/// From now on Ctrl-C (and SIGTERM, SIGHUP) asks a command that changes something to roll back and stop; a second time ends the process at once, which a database survives. One that changes
/// nothing ends at once: it may be waiting for somebody who reads its output or writes its input. What the process was started to ignore it goes on to ignore, as under nohup.
pub(crate) fn catch_interrupts() {
    // A file that grows beyond what the shell allows (`ulimit -f`) is an error that names it, as on a full disk; without a handler the system ends the process.
    _ = flag::register(SIGXFSZ, Arc::default());
    let ignored = ignored_signals();
    let caught: Vec<i32> = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0).collect();
    // Without a handler a signal ends the process: also safe.
    let Ok(mut signals) = Signals::new(&caught) else { return };
    let watch = move || signals.forever().for_each(interrupt);
    if std::thread::Builder::new().name("signals".into()).spawn(watch).is_err() {
        // Nobody would look at what was caught.
        caught.into_iter().for_each(|signal| _ = flag::register_conditional_default(signal, Arc::new(AtomicBool::new(true))));
    }
}

/// Told the signal, and whether it is the first that nobody has seen yet; says whether that was all there is to do.
type Handler = Box<dyn Fn(i32, bool) -> bool + Send>;

static HANDLER: Mutex<Option<Handler>> = Mutex::new(None);

/// Asks this first when a signal comes, from now on.
pub(crate) fn handle_interrupts(handler: Handler) {
    *HANDLER.lock().unwrap_or_else(PoisonError::into_inner) = Some(handler);
}

/// What the user has stopped has ended, and the command goes on.
pub(crate) fn forget_interrupt() {
    INTERRUPTED.store(false, Ordering::Relaxed);
}

fn interrupt(signal: i32) {
    let again = INTERRUPTED.swap(true, Ordering::Relaxed);
    let handler = HANDLER.lock().unwrap_or_else(PoisonError::into_inner);
    if handler.as_ref().is_some_and(|handler| handler(signal, !again)) {
        return;
    }
    if again || !CHANGES.load(Ordering::Relaxed) {
        if !again {
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "pagefold: interrupted; the database is as it was");
        }
        std::process::exit(1);
    }
}

/// The signals that this process ignores, signal 1 in the lowest bit; where the system does not say so, none.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.unwrap_or(0)
}

/// Has the user asked to stop?
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// One bar at a time, for the current phase.
#[derive(Default)]
pub(crate) struct Bars {
    current: Mutex<Option<ProgressBar>>,
    hidden: AtomicBool,
}

impl Bars {
    fn replace(&self, bar: Option<ProgressBar>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = std::mem::replace(&mut *current, bar) {
            old.finish_and_clear();
        }
    }

    /// Shows no bar from now on, if what the command prints goes to a terminal: they would be on each other's lines.
    pub(crate) fn hide_beside_output(&self) {
        if std::io::stdout().is_terminal() {
            self.hidden.store(true, Ordering::Relaxed);
            self.clear();
        }
    }

    /// Takes the bar off the screen.
    pub(crate) fn clear(&self) {
        self.replace(None);
    }
}

fn template(total: Option<u64>, unit: Unit) -> &'static str {
    match (total, unit) {
        (Some(_), Unit::Bytes) => "{msg:32} {wide_bar:.cyan/dim} {bytes:>10} of {total_bytes:10} {eta:>4}",
        (Some(_), _) => "{msg:32} {wide_bar:.cyan/dim} {human_pos:>10} of {human_len:10} {eta:>4}",
        (None, Unit::Bytes) => "{msg:32} {spinner} {bytes}",
        (None, _) => "{msg:32} {spinner} {human_pos}",
    }
}

impl Progress for Bars {
    fn start(&self, phase: &str, total: Option<u64>, unit: Unit) {
        if self.hidden.load(Ordering::Relaxed) {
            return;
        }
        // Hidden when standard error is no terminal.
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr_with_hz(10));
        if let Ok(style) = ProgressStyle::with_template(template(total, unit)) {
            bar.set_style(style);
        }
        bar.set_message(phase.to_owned());
        bar.tick();
        self.replace(Some(bar));
    }

    fn advance(&self, n: u64) {
        if let Some(bar) = &*self.current.lock().unwrap_or_else(PoisonError::into_inner) {
            bar.inc(n);
        }
    }

    fn finish(&self) {
        self.clear();
    }

    fn interrupted(&self) -> bool {
        interrupted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_valid() {
        for total in [None, Some(7)] {
            for unit in [Unit::Bytes, Unit::Rows, Unit::Pages, Unit::Partitions] {
                assert!(ProgressStyle::with_template(template(total, unit)).is_ok());
            }
        }
    }
}
