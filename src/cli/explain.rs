//! `tollgate explain`: how a request would be read, without asking anyone.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use http::{HeaderName, HeaderValue, Method, Uri};

use crate::call::{Ask, Body, Journey, Request};
use crate::clock::Clock;
use crate::config::units::show_duration;
use crate::config::{Config, StoreUrl};
use crate::jwks;
use crate::provider::credential::CredentialPlace;
use crate::refusal::Refusal;
use crate::route::Route;
use crate::server::gateway::Gateway;
use crate::server::respond;
use crate::server::router::Match;

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    file: super::ConfigFile,
    /// The request's method.
    method: Method,
    /// Its URL, or its path and query.
    url: Uri,
    /// A header, as `Name: value`; may be given again.
    #[arg(short = 'H', long = "header", value_parser = header)]
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    #[arg(short, long)]
    data: Option<String>,
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("a header is written Name: value")?;
    let name = name.trim().parse::<HeaderName>().map_err(|error| error.to_string())?;
    Ok((name, value.trim().parse::<HeaderValue>().map_err(|error| error.to_string())?))
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut config = Config::load(&arguments.file.config)?;
    // Nobody is asked, the store included.
    config.store.url = StoreUrl::Memory;
    // Nor the issuer of tokens: without its keys none is known.
    if config.callers.jwt.as_ref().is_some_and(|jwt| matches!(jwt.jwks, jwks::Source::Url(_))) {
        config.callers.jwt = None;
    }
    let gate = Gateway::start(config, Clock::system()).await?;
    let snapshot = gate.snapshot();
    let Match { entry, path } = match snapshot.router.find(&arguments.method, &arguments.url) {
        Ok(found) => found,
        Err(none) => bail!("no route: {}", none.refusal.detail),
    };
    let route = &*entry.route;
    println!("route      {} ({} {})", route.name, route.expose.method, route.expose.path());
    println!("provider   {} at {}", route.provider.name, route.provider.base_url);
    let request = request(arguments, path, gate.shared().clock.ticks()).context("the request cannot be built")?;
    let caller = match entry.authenticate.caller(&request).await {
        Ok(caller) => caller,
        Err(refusal) => return Ok(refused("authenticate", &refusal)),
    };
    println!("caller     {}", caller.name);
    let call = match entry.validate.call(Ask { request, caller }).await {
        Ok(call) => call,
        Err(refusal) => return Ok(refused("validate", &refusal)),
    };
    println!("question   as asked, and what makes it the same question:");
    for (field, value) in route.fields.iter().zip(&call.question.0) {
        if let Some(value) = value {
            println!("             {} = {:?}  ~ {:?}", field.name, value.asked.text(), value.key);
        }
    }
    println!("key        {}", call.key.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}")));
    if let Some(writes) = route.writes {
        println!("intention  key {}; replayed for {}", writes.key.word(), show_duration(writes.keep));
    }
    println!("stages     {}", stages(route, call.volatile).join(", "));
    print_request(route, &call.question.0);
    println!("price      {}", route.price(&call.question.0).map_or_else(|| "none".to_owned(), |price| price.to_string()));
    Ok(ExitCode::SUCCESS)
}

fn request(arguments: &Arguments, path: Box<[String]>, now: crate::clock::Timestamp) -> Result<Box<Request>, http::Error> {
    let mut builder = http::Request::builder().method(arguments.method.clone()).uri(arguments.url.clone());
    for (name, value) in &arguments.headers {
        builder = builder.header(name, value);
    }
    let (head, ()) = builder.body(())?.into_parts();
    let journey = Journey::new(respond::request_id(&head.headers), now);
    let body = Body::Whole(arguments.data.clone().unwrap_or_default().into());
    Ok(Box::new(Request { head, body, peer: std::net::IpAddr::from([127, 0, 0, 1]), path, journey }))
}

fn refused(stage: &str, refusal: &Refusal) -> ExitCode {
    println!("refused    by {stage}: {} ({}): {}", refusal.code.word(), refusal.code.status().as_u16(), refusal.detail);
    ExitCode::SUCCESS
}

fn stages(route: &Route, volatile: bool) -> Vec<&'static str> {
    let stages = [
        ("kill_switch", true),
        ("authenticate", true),
        ("validate", true),
        ("limits", route.limits.is_some()),
        ("lockout", route.lockout.is_some()),
        ("idempotency", route.writes.is_some()),
        ("curated", route.curated.is_some()),
        ("cache", route.cache.is_some() && !volatile),
        ("single_flight", route.coalesce && route.writes.is_none()),
        ("breaker", true),
        ("retry", true),
        ("budget", true),
        ("upstream", true),
    ];
    stages.into_iter().filter(|(_, met)| *met).map(|(name, _)| name).collect()
}

fn print_request(route: &Route, values: &crate::provider::template::Values) {
    let Some(rendered) = route.template.render(values) else { return };
    let mut target = rendered.target;
    let mut headers: Vec<String> =
        rendered.headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap_or_default())).collect();
    match route.provider.credential.as_ref().map(|credential| &credential.place) {
        Some(CredentialPlace::Query(name)) => {
            target.push(if target.contains('?') { '&' } else { '?' });
            target.push_str(&format!("{name}=[hidden]"));
        }
        Some(CredentialPlace::Header { name, prefix }) => headers.push(format!("{name}: {prefix}[hidden]")),
        Some(CredentialPlace::Basic { user, .. }) => {
            let user = user.as_ref().or(rendered.user.as_ref()).or(route.provider.account.as_ref());
            headers.push(format!("authorization: Basic {}:[hidden]", user.map_or("", String::as_str)));
        }
        Some(CredentialPlace::BasicUser) => headers.push("authorization: Basic [hidden]".to_owned()),
        None => {}
    }
    println!("upstream   {} {}{target}", rendered.method, route.provider.base_url);
    if let Some(idempotency) = route.provider.idempotency.as_ref().filter(|_| route.writes.is_some()) {
        headers.push(format!("{}: [derived from the caller's]", idempotency.header));
    }
    for header in headers {
        println!("             {header}");
    }
    if let Some(body) = rendered.body {
        println!("             {}", String::from_utf8_lossy(&body));
    }
}
