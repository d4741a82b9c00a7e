//! nginx with the same work in Lua: what an operator would write who has no gateway.
//!
//! The parts are in `lua/`: the way of a request, and a client for the one call to Redis (Debian has no package of one).

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use sha2::{Digest, Sha256};

use crate::common::load::{self, CALLERS};
use crate::common::nginx::{self, Config};
use crate::common::peer::Peer;
use crate::redis_server::RedisServer;
use crate::script;

/// Where Debian and others keep nginx's modules.
const MODULES: [&str; 2] = ["/usr/lib/nginx/modules", "/usr/lib64/nginx/modules"];

/// nginx and its modules, in the order in which they are loaded.
pub struct Program {
    nginx: PathBuf,
    modules: [PathBuf; 2],
}

pub fn program() -> Option<Program> {
    let modules_in = |place| ["ndk_http_module.so", "ngx_http_lua_module.so"].map(|name| Path::new(place).join(name));
    let modules = MODULES.into_iter().map(modules_in).find(|modules| modules.iter().all(|module| module.exists()))?;
    Some(Program { nginx: nginx::program()?, modules })
}

pub fn start(directory: &Path, program: &Program, redis: &RedisServer) -> Result<Peer> {
    let directory = directory.join("lua");
    fs::create_dir_all(&directory)?;
    fs::write(directory.join("settings.lua"), settings(redis))?;
    fs::write(directory.join("limiter.lua"), include_str!("lua/limiter.lua"))?;
    fs::write(directory.join("hit.lua"), include_str!("lua/hit.lua"))?;
    let top = program.modules.each_ref().map(|module| format!("load_module {};\n", module.display())).concat();
    let here = directory.display();
    let http = |address, upstream| {
        format!(
            r#"  lua_package_path "{here}/?.lua;;";
  lua_shared_dict answers 64m;
  init_by_lua_block {{ require("hit") }}
  server {{
    listen {address};
    location /geocode/v1/json {{ content_by_lua_block {{ require("hit").answer() }} }}
    location /paid {{ internal; proxy_pass http://{upstream}; }}
  }}
"#
        )
    };
    nginx::start("nginx + Lua", &directory, &program.nginx, Config { top, http })
}

/// What the Lua parts are told.
fn settings(redis: &RedisServer) -> String {
    let hash = |index| Sha256::digest(load::caller_key(index)).iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    let callers = (0..CALLERS).fold(String::new(), |table, index| table + &format!("    ['{}'] = 'c{index}',\n", hash(index)));
    let numbers = script::NUMBERS.map(|number| format!("'{number}'")).join(", ");
    format!(
        "return {{\n  host = '{}', port = {}, script = '{}',\n  numbers = {{ {numbers} }},\n  callers = {{\n{callers}  }},\n}}\n",
        redis.address.ip(),
        redis.address.port(),
        redis.hash
    )
}
