//! How a bench, and this binary in another role, is told what to do.

use std::env;

use anyhow::{Context, Result};

/// A number from the environment.
pub fn number(name: &str, default: u64) -> Result<u64> {
    env::var(name).map_or(Ok(default), |value| value.parse().with_context(|| format!("{name}={value} is no number")))
}

/// What follows the argument by which a bench starts itself in another role, if it was.
pub fn role(argument: &str) -> Option<Vec<String>> {
    let mut arguments = env::args().skip_while(|known| known != argument);
    arguments.next()?;
    Some(arguments.collect())
}
