//! `tollgate check`.

use std::path::Path;
use std::process::ExitCode;

use super::WRONG_CONFIG;
use crate::config::Config;

pub(super) fn run(path: &Path) -> ExitCode {
    match Config::load(path) {
        Ok(config) => {
            println!("# {}: no faults. In effect, with secrets by reference:\n", path.display());
            print!("{}", config.effective());
            ExitCode::SUCCESS
        }
        Err(faults) => {
            eprintln!("{faults}");
            ExitCode::from(WRONG_CONFIG)
        }
    }
}
