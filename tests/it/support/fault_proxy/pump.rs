//! One connection through the proxy: whole commands one way, whole replies the other.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::sync::Mutex;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;

use super::lose::Fate;
use super::{Link, Shared};
use crate::support::resp::Frames;

/// A frame and when it is to arrive.
type Timed = (Bytes, Instant);

/// Whose reply is awaited.
#[derive(Default)]
struct Asked {
    commands: VecDeque<String>,
    subscribed: bool,
}

const COMMANDS: usize = 0;
const REPLIES: usize = 1;

impl Shared {
    /// Reads until the client has had enough, and answers nothing.
    pub(super) async fn swallow(&self, mut client: TcpStream) -> io::Result<()> {
        let to_nowhere = unbounded_channel().0;
        self.read(&mut client, COMMANDS, to_nowhere).await
    }

    /// Relays until Redis ends the connection, or either side breaks it.
    pub(super) async fn relay(&self, client: TcpStream) -> io::Result<()> {
        let redis = TcpStream::connect(self.redis).await?;
        client.set_nodelay(true)?;
        redis.set_nodelay(true)?;
        let (mut from_client, to_client) = client.into_split();
        let (mut from_redis, to_redis) = redis.into_split();
        let (send_command, commands) = unbounded_channel();
        let (send_reply, replies) = unbounded_channel();
        let asked = Mutex::default();
        let up = async {
            tokio::try_join!(self.read(&mut from_client, COMMANDS, send_command), self.carry(commands, to_redis, &asked))?;
            // A client that will ask no more may still listen.
            Ok(pending::<Infallible>().await)
        };
        let down =
            async { tokio::try_join!(self.read(&mut from_redis, REPLIES, send_reply), self.bring(replies, to_client, &asked)) };
        tokio::select! {
            ended = up => ended.map(|never| match never {}),
            ended = down => ended.map(|_| ()),
        }
    }

    async fn read(&self, from: &mut (impl AsyncRead + Unpin), way: usize, to: UnboundedSender<Timed>) -> io::Result<()> {
        let mut frames = Frames::default();
        while frames.fill(from).await? {
            let due = Instant::now() + self.delays.lock().unwrap()[way];
            while let Some(frame) = frames.cut().map_err(io::Error::other)? {
                if way == COMMANDS {
                    self.counts.send_modify(|counts| *counts.commands.entry(name(&frame)).or_default() += 1);
                }
                // With nobody at the other end the connection is ending, or a black hole.
                let _ = to.send((frame, due));
            }
        }
        Ok(())
    }

    /// Waits until the next frame is due and may pass; none after the last.
    async fn next(&self, queue: &mut UnboundedReceiver<Timed>) -> Option<Bytes> {
        let (frame, due) = queue.recv().await?;
        tokio::time::sleep_until(due).await;
        self.link.subscribe().wait_for(|link| *link != Link::Hang).await.ok()?;
        Some(frame)
    }

    async fn carry(
        &self,
        mut commands: UnboundedReceiver<Timed>,
        mut redis: OwnedWriteHalf,
        asked: &Mutex<Asked>,
    ) -> io::Result<()> {
        while let Some(command) = self.next(&mut commands).await {
            asked.lock().unwrap().ask(name(&command));
            redis.write_all(&command).await?;
        }
        redis.shutdown().await
    }

    async fn bring(
        &self,
        mut replies: UnboundedReceiver<Timed>,
        mut client: OwnedWriteHalf,
        asked: &Mutex<Asked>,
    ) -> io::Result<()> {
        while let Some(reply) = self.next(&mut replies).await {
            let command = asked.lock().unwrap().answered_by(&reply);
            match command.map_or(Fate::Passed, |command| self.fate(&command, &reply)) {
                Fate::Passed => client.write_all(&reply).await?,
                Fate::Swallowed => {}
                Fate::Cut => return Err(io::Error::other("cut where a reply was due")),
            }
        }
        client.shutdown().await
    }

    fn fate(&self, command: &str, reply: &[u8]) -> Fate {
        if matches!(reply.first(), Some(b'-' | b'!')) {
            return Fate::Passed;
        }
        let fate = self.dice.lock().unwrap().throw(command);
        if fate != Fate::Passed {
            self.counts.send_modify(|counts| *counts.lost.entry(command.to_owned()).or_default() += 1);
        }
        fate
    }
}

impl Asked {
    fn ask(&mut self, command: String) {
        if command.ends_with("SUBSCRIBE") {
            self.subscribed = true; // answered by pushes, or what stands for them in RESP2
        } else {
            self.commands.push_back(command);
        }
    }

    /// The command a reply belongs to; none of a push.
    fn answered_by(&mut self, reply: &[u8]) -> Option<String> {
        let in_disguise = || self.subscribed && (name(reply).ends_with("SUBSCRIBE") || name(reply).ends_with("MESSAGE"));
        if reply.starts_with(b">") || reply.starts_with(b"*") && in_disguise() {
            return None;
        }
        self.commands.pop_front()
    }
}

/// The first text of a list, in capitals: of a command its name.
fn name(frame: &[u8]) -> String {
    let line = frame.split(|byte| *byte == b'\n').nth(2).unwrap_or_default();
    String::from_utf8_lossy(line).trim_end().to_ascii_uppercase()
}
