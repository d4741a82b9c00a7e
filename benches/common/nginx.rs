//! nginx as a peer.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Result;

use super::peer::{Peer, free_address};
use super::{cores, upstream};

/// Where Debian and others put it: `sbin` is in few people's `PATH`.
pub fn program() -> Option<PathBuf> {
    let places = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"];
    places.into_iter().map(PathBuf::from).find(|path| path.exists())
}

/// What stands in front of all, and the `http` section, given where to listen and whom to pay.
pub struct Config<F> {
    pub top: String,
    pub http: F,
}

/// Starts it with one worker.
pub fn start(
    name: &'static str,
    directory: &Path,
    program: &Path,
    config: Config<impl FnOnce(SocketAddr, SocketAddr) -> String>,
) -> Result<Peer> {
    let (address, upstream) = (free_address()?, upstream::start()?);
    let (file, log) = (directory.join("nginx.conf"), directory.join("nginx.log"));
    fs::write(&file, whole(directory, &config.top, &(config.http)(address, upstream.address)))?;
    let mut command = cores::on(cores::SERVER, program);
    command.arg("-e").arg(&log).arg("-p").arg(directory).arg("-c").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
    Peer::start(name, command, address, &log, Some(upstream.calls))
}

fn whole(directory: &Path, top: &str, http: &str) -> String {
    let directory = directory.display();
    format!(
        "daemon off;
user root;
worker_processes 1;
pid {directory}/nginx.pid;
error_log {directory}/nginx.log warn;
{top}
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  tcp_nodelay on;
  sendfile on;
  keepalive_requests 1000000000;
{http}}}
"
    )
}
