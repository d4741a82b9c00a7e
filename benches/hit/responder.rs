//! The floor: bare hyper, in a process of its own.

use std::env;
use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};

use crate::common::peer::{Peer, free_address};
use crate::common::{cores, settings, upstream};

/// The argument under which this binary is the peer: `--responder PORT`.
const ARGUMENT: &str = "--responder";

/// Answers until it is killed, if this process was started as the peer.
pub fn run_if_asked() -> Option<Result<()>> {
    let arguments = settings::role(ARGUMENT)?;
    Some(run(&arguments))
}

fn run(arguments: &[String]) -> Result<()> {
    let port: u16 = arguments.first().context("no port")?.parse()?;
    upstream::serve(TcpListener::bind((Ipv4Addr::LOCALHOST, port))?, &Arc::default())
}

pub fn start(directory: &Path) -> Result<Peer> {
    let address = free_address()?;
    let log = directory.join("hyper.log");
    let mut command = cores::on(cores::SERVER, &env::current_exe()?);
    command.arg(ARGUMENT).arg(address.port().to_string()).stderr(File::create(&log)?);
    Peer::start("hyper", command, address, &log, None)
}
