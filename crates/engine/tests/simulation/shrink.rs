//! A history that fails, made shorter: steps are left out as long as what is left still fails.

use crate::images::Tally;
use crate::run::{History, Images, run};
use crate::setting;
use crate::steps::Step;
use parking_lot::Mutex;
use std::sync::Arc;

/// What a fault is about: without where it was, and without numbers.
fn kind(fault: &str) -> String {
    let words = ["DropAll: ", "KeepAll: ", "Random("].iter().find_map(|policy| fault.split_once(policy)).map_or(fault, |(_, what)| what);
    words.chars().filter(|c| !c.is_ascii_digit()).take(30).collect()
}

/// So many runs at most.
const RUNS_MAX: usize = 600;

/// The shortest history found that fails, and how it does.
pub(crate) fn shrink(history: &History, fault: String) -> (History, String) {
    let wanted = kind(&fault);
    let mut best = (history.clone(), fault);
    let mut runs = 0;
    // A call has another number when steps before it are gone: without images where the fault needs none, else with all.
    if matches!(history.images, Images::Each(_)) {
        for images in [Images::Each(u64::MAX), Images::All] {
            let other = History { images, ..history.clone() };
            if let Err(fault) = run(&other, &Arc::default())
                && kind(&fault) == wanted
            {
                best = (other, fault);
                break;
            }
        }
    }
    let mut size = best.0.steps.len().div_ceil(2);
    while size > 0 && runs < RUNS_MAX {
        let mut at = 0;
        let before = best.0.steps.len();
        while at < best.0.steps.len() && runs < RUNS_MAX {
            let mut steps: Vec<Step> = best.0.steps.clone();
            steps.drain(at..(at + size).min(steps.len()));
            let shorter = History { steps, ..best.0.clone() };
            runs += 1;
            match run(&shorter, &Arc::default()) {
                Err(fault) if kind(&fault) == wanted => best = (shorter, fault),
                _ => at += size,
            }
        }
        // Once more with the smallest, until nothing goes.
        if size > 1 || best.0.steps.len() == before {
            size /= 2;
        }
    }
    best
}

/// Runs a history; when it fails, makes it shorter and says everything that it takes to see it again. With `PAGEFOLD_SIMULATION_GO_ON=1` it only says what is wrong, and the run goes on.
pub(crate) fn expect_clean(history: &History, tally: &Arc<Mutex<Tally>>) -> u64 {
    run(history, tally).unwrap_or_else(|fault| {
        let (images, seed, count) = (tally.lock().images.len(), history.seed, history.steps.len());
        let what = format!("seed {seed}, {count} steps, {:?}, after {images} distinct images: {fault}", history.images);
        if setting("PAGEFOLD_SIMULATION_GO_ON", 0) == 1 {
            println!("{what}");
            tally.lock().faults += 1;
            return 0;
        }
        let (shortest, reason) = shrink(history, fault);
        let steps: Vec<String> = shortest.steps.iter().enumerate().map(|(at, step)| format!("  {at:>3} {step:?}")).collect();
        panic!(
            "{what}\nshortest, {} steps, {:?}, sectors of {}, {:?}: {reason}\n{}",
            steps.len(),
            shortest.images,
            shortest.sector_bytes,
            shortest.shape,
            steps.join("\n")
        )
    })
}
