//! Making connections.

use std::sync::{Arc, Weak};
use std::time::Duration;

use redis::aio::{AsyncPushSender, MultiplexedConnection};
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, IntoConnectionInfo, ProtocolVersion, PushInfo, PushKind, TlsCertificates};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::super::super::StoreError;
use super::super::Options;
use super::super::fault::{Fault, failed};
use super::super::keys::Keys;
use super::super::script::{self, PROBE};
use super::{Call, Link, Live};

/// Calls that may be queued for sending. Beyond, they wait, within their timeout.
const QUEUE: usize = 1024;

/// Knows where the store is. Prints nothing: the address may hold a password.
#[derive(Clone)]
pub(in super::super) struct Dialer {
    client: Client,
    timeout: Duration,
    pub(in super::super) keys: Keys,
}

impl Dialer {
    pub(in super::super) fn new(options: Options) -> Result<Self, StoreError> {
        let unusable = || StoreError::Failed("the store's url is no redis:// or rediss:// address".to_owned());
        if !options.url.starts_with("redis://") && !options.url.starts_with("rediss://") {
            return Err(unusable());
        }
        let info = options.url.as_str().into_connection_info().map_err(|_| unusable())?;
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let keys = Keys::new(options.prefix, settings.db());
        let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true)).set_redis_settings(settings);
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let client = match options.ca.filter(|_| options.url.starts_with("rediss://")) {
            Some(ca) if !holds_certificates(&ca) => Err(()),
            Some(ca) => {
                let certificates = TlsCertificates { client_tls: None, root_cert: Some(ca) };
                Client::build_with_tls(info, certificates).map_err(drop)
            }
            None => Ok(Client::open(info).map_err(|_| unusable())?),
        };
        let client = client.map_err(|()| StoreError::Failed("the store's ca is no certificate in PEM form".to_owned()))?;
        Ok(Self { client, timeout: options.timeout, keys })
    }

    /// A connection of its own; what the store says unasked goes to `pushes`.
    pub(in super::super) async fn connect(&self, pushes: impl AsyncPushSender) -> Result<MultiplexedConnection, Fault> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(None)
            .set_pipeline_buffer_size(QUEUE)
            .set_push_sender(pushes);
        let connecting = self.client.get_multiplexed_async_connection_with_config(&config);
        within(self.timeout, async { connecting.await.map_err(|error| Fault::of(&error)) }).await
    }
}

/// At least one, and no broken one.
fn holds_certificates(pem: &[u8]) -> bool {
    let mut certificates = CertificateDer::pem_slice_iter(pem).peekable();
    certificates.peek().is_some() && certificates.all(|certificate| certificate.is_ok())
}

/// Bounds one step.
pub(in super::super) async fn within<T>(timeout: Duration, step: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    tokio::time::timeout(timeout, step).await.unwrap_or(Err(Fault::Link(StoreError::Timeout)))
}

impl Link {
    /// A connection that has loaded every script, run a real one, and told the time.
    pub(super) async fn dial(self: &Arc<Self>, number: u64) -> Result<Live, Fault> {
        let mut connection = self.dialer.connect(hang_up(Arc::downgrade(self), number)).await?;
        within(self.timeout, self.load_all(&mut connection)).await?;
        let probe = Call::new(&PROBE).key(self.dialer.keys.probe());
        let asked = self.clock.ticks();
        let mut parts = within(self.timeout, self.send(&mut connection, &probe)).await?;
        let there = parts.time().ok_or_else(|| Fault::Link(super::out_of_step()))?;
        self.follow(there, asked);
        Ok(Live { connection, number })
    }

    async fn load_all(&self, connection: &mut MultiplexedConnection) -> Result<(), Fault> {
        let mut pipe = redis::pipe();
        for script in script::ALL {
            pipe.cmd("SCRIPT").arg("LOAD").arg(script.text(self.time));
        }
        let loaded: Vec<String> = pipe.query_async(connection).await.map_err(|error| match Fault::of(&error) {
            Fault::Call(StoreError::Failed(text)) => {
                Fault::Call(StoreError::Failed(format!("{text}: the scripts do not load; Redis 7 or Valkey is needed")))
            }
            fault => fault,
        })?;
        let right = script::ALL.iter().map(|script| script.hash(self.time)).eq(loaded.iter().map(String::as_str));
        if right { Ok(()) } else { Err(Fault::Link(failed("it has other scripts than it was given"))) }
    }
}

/// Takes a connection away as soon as the other end is gone, though nobody asks anything of it.
fn hang_up(link: Weak<Link>, number: u64) -> impl Fn(PushInfo) -> Result<(), redis::aio::SendError> + Send + Sync + 'static {
    move |push| {
        if push.kind == PushKind::Disconnection
            && let Some(link) = link.upgrade()
        {
            link.hung_up(number);
        }
        Ok(())
    }
}
