//! The program runs its terminals in a child, kills that at a random moment, opens the database,
//! and looks whether everything is as it was told; again and again, on the same database.

use crate::acknowledged::{Acknowledged, read};
use crate::options::Options;
use crate::random::Draw;
use crate::statements::all;
use crate::{conditions, driver};
use pagefold_engine::Silent;
use pagefold_io::{Clock, OsClock, OsStorage, Storage};
use pagefold_lab_engine::data::Outcome;
use pagefold_lab_engine::sessions::Failure;
use pagefold_lab_engine::sessions::ours::{Ours, open, settings};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the child says when its terminals begin.
const READY: &str = "ready";

/// The child: runs terminals until it is killed.
pub(crate) fn child(options: &Options, directory: &Path, told_to: &Path) -> Outcome<()> {
    let database = open(directory, options.memory_bytes())?;
    let mut plan = options.plan();
    plan.duration = Duration::from_secs(3600);
    plan.told_to = Some(told_to.to_path_buf());
    plan.is_loud = false;
    let of = options.used();
    println!("{READY}");
    driver::drive(&plan, &|| Ok(Box::new(Ours::new(&database, &of, all())?)))?;
    Err("nobody killed it".into())
}

/// The parent.
pub(crate) fn run(options: &Options, directory: &Path, told: &Path) -> Outcome<()> {
    let mut acknowledged = Acknowledged::default();
    let mut draw = Draw::new(options.seed, 1 << 20);
    for kill in 1..=options.kills {
        let told_to = told.join(kill.to_string());
        std::fs::create_dir_all(&told_to)?;
        let after = Duration::from_millis(u64::try_from(draw.between(200, options.kill_after_ms_max()))?);
        let mut child = Command::new(std::env::current_exe()?)
            .args(options.to_child(directory, &told_to, options.seed + kill as u64))
            .stdout(Stdio::piped())
            .spawn()?;
        let mut said = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut said)?;
        if said.trim_end() == READY {
            std::thread::sleep(after);
        }
        // One that has ended by itself has said why.
        if let Some(status) = child.try_wait()? {
            return Err(format!("kill {kill}: the child ended by itself: {status}").into());
        }
        child.kill()?;
        child.wait()?;
        for file in std::fs::read_dir(&told_to)? {
            let text = std::fs::read_to_string(file?.path())?;
            acknowledged.add(read(&text).ok_or("a line of acknowledgements that is none")?);
        }
        let began = Instant::now();
        let database = open(directory, options.memory_bytes())?;
        let recovered = began.elapsed();
        let mut connection = Ours::new(&database, &options.used(), all())?;
        conditions::check(&mut connection, options.scale())?;
        let found = acknowledged.compare(&mut connection)?;
        drop(connection);
        println!("kill {kill}, {after:.1?} after the start: opened in {recovered:.2?}; {found}");
        // Of commits that wait for nothing the last ones may be lost.
        found.check(options.synchronous == "off", kill * options.terminals)?;
        drop(database);
        check_files(directory, options)?;
    }
    println!("{} kills: all conditions held, CHECK found nothing", options.kills);
    Ok(())
}

/// The pages, entries and files of a database that is closed.
pub(crate) fn check_files(directory: &Path, options: &Options) -> Outcome<()> {
    let (storage, clock): (Arc<dyn Storage>, Arc<dyn Clock>) = (Arc::new(OsStorage), Arc::new(OsClock));
    let found = pagefold_utility::check(&storage, &clock, directory, settings(options.memory_bytes()), &Silent)?;
    if found.is_clean() { Ok(()) } else { Err(Failure::fatal(found.to_text(20)).into()) }
}
