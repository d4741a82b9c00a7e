//! The servers under load, and how each is configured.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::common::load::{self, CALLERS};
use crate::common::nginx::{self, Config};
use crate::common::peer::Peer;
use crate::common::tollgate::{self, Route, Setup};
use crate::common::upstream;
use crate::responder;

/// Those named in `only`, or all.
pub fn start_all(directory: &Path, only: &str) -> Result<Vec<Peer>> {
    let wanted = |name: &str| only.is_empty() || only.split(',').any(|one| one == name);
    let mut peers = Vec::new();
    if wanted("hyper") {
        peers.push(responder::start(directory)?);
    }
    if wanted("nginx") {
        match nginx::program() {
            Some(program) => peers.push(nginx(directory, &program)?),
            None => eprintln!("no nginx to compare with, left out: apt-get install nginx-light"),
        }
    }
    if wanted("tollgate") {
        peers.push(tollgate(directory, "tollgate", "warn")?);
        peers.push(tollgate(directory, "tollgate, logging", "info")?);
    }
    ensure!(!peers.is_empty(), "HIT_PEERS={only}: there are hyper, nginx and tollgate");
    Ok(peers)
}

fn tollgate(directory: &Path, name: &'static str, level: &str) -> Result<Peer> {
    let routes = &[Route { name: "geocode", limits: true }];
    tollgate::start(directory, Setup { name, level, store: "url = \"memory:\"", routes, upstream: upstream::start()? })
}

fn nginx(directory: &Path, program: &Path) -> Result<Peer> {
    let http = |address, upstream| nginx_http(directory, address, upstream);
    nginx::start("nginx", directory, program, Config { top: String::new(), http })
}

/// What an operator of nginx would write for the same work. The limits are set so that nothing is refused.
fn nginx_http(directory: &Path, address: SocketAddr, upstream: SocketAddr) -> String {
    let directory = directory.display();
    let callers = (0..CALLERS).fold(String::new(), |map, index| map + &format!("    {} c{index};\n", load::caller_key(index)));
    format!(
        r#"  open_file_cache max=10000 inactive=10m;
  open_file_cache_valid 10m;
  map $http_x_api_key $caller {{
    default "";
{callers}  }}
  limit_req_zone $caller zone=callers:1m rate=1000000r/s;
  limit_req_zone $server_name zone=route:1m rate=1000000r/s;
  proxy_cache_path {directory}/cache levels=1:2 keys_zone=answers:10m max_size=100m inactive=30d use_temp_path=off;
  server {{
    listen {address};
    location /geocode/v1/json {{
      if ($caller = "") {{ return 401; }}
      limit_req zone=callers burst=1000000 nodelay;
      limit_req zone=route burst=1000000 nodelay;
      proxy_cache answers;
      proxy_cache_key $uri$is_args$args;
      proxy_cache_valid 200 30d;
      proxy_cache_lock on;
      proxy_pass http://{upstream};
    }}
  }}
"#
    )
}
