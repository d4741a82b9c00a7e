//! Any history of paid writes, played to a store: whatever is claimed twice, answered late or never heard, whoever dies or stands
//! still, what is settled and what lapses, an intention is sent once. Where the provider tells the same one from another it may be
//! sent again, but as the same.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;

use self::player::Player;
use super::World;
use super::writes::{LEASE, TIMEOUT};

mod player;
mod truth;

const OWNERS: usize = 3;
const INTENTIONS: usize = 2;
/// How long an answer is replayed, and another turn remembered.
const KEPT: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
pub enum Step {
    /// Whoever has nothing in hand wants something done, by the usual question or by another one.
    Claim {
        by: usize,
        what: usize,
        other: bool,
        fate: Fate,
    },
    /// It writes down that it is sending. The way to the store takes its time, and so does the way back.
    Sending {
        by: usize,
        there: Duration,
        back: Duration,
        fate: Fate,
    },
    /// Its bytes leave, if they still may.
    Leave(usize),
    Answer(usize, Word),
    Renew(usize),
    Crash(usize),
    /// All die at once, and the store's process, if it has one.
    CrashAll,
    /// An admin finds out the truth.
    Settle(usize),
    /// What was on its way to the store arrives.
    Arrive,
    Pass(Duration),
}

/// Of what the store is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Heard,
    /// Done, and its answer is lost.
    Lost,
    /// On its way, until it arrives.
    Late,
}

/// The provider's.
#[derive(Clone, Copy, Debug)]
pub enum Word {
    Done,
    /// Busy: it has done nothing.
    NoEffect,
    /// None, or one that says nothing.
    Nothing,
}

#[derive(Clone, Debug)]
pub struct History {
    steps: Vec<Step>,
    /// The provider tells the same intention from another.
    again: bool,
}

pub fn any_writes(most: usize, again: bool) -> impl Strategy<Value = History> {
    let steps = prop::collection::vec(any_turn(), 1..most);
    steps.prop_map(move |turns| History { steps: turns.into_iter().flatten().collect(), again })
}

/// Some steps, of which more than chance would have it are a whole send.
fn any_turn() -> impl Strategy<Value = Vec<Step>> {
    let answer = prop::option::weighted(0.3, any_word());
    let send = (0..OWNERS, 0..INTENTIONS, any_way(), any_way(), answer).prop_map(|(by, what, there, back, answer)| {
        let fate = Fate::Heard;
        let sent = [Step::Claim { by, what, other: false, fate }, Step::Sending { by, there, back, fate }, Step::Leave(by)];
        sent.into_iter().chain(answer.map(|word| Step::Answer(by, word))).collect()
    });
    prop_oneof![4 => any_step().prop_map(|step| vec![step]), 1 => send]
}

fn any_step() -> impl Strategy<Value = Step> {
    let by = || 0..OWNERS;
    let fate = || prop_oneof![6 => Just(Fate::Heard), 1 => Just(Fate::Lost), 1 => Just(Fate::Late)];
    let claim = (by(), 0..INTENTIONS, prop::bool::weighted(0.1), fate());
    prop_oneof![
        6 => claim.prop_map(|(by, what, other, fate)| Step::Claim { by, what, other, fate }),
        6 => (by(), any_way(), any_way(), fate()).prop_map(|(by, there, back, fate)| Step::Sending { by, there, back, fate }),
        6 => by().prop_map(Step::Leave),
        3 => (by(), any_word()).prop_map(|(by, word)| Step::Answer(by, word)),
        2 => by().prop_map(Step::Renew),
        2 => by().prop_map(Step::Crash),
        1 => Just(Step::CrashAll),
        3 => (0..INTENTIONS).prop_map(Step::Settle),
        1 => Just(Step::Arrive),
        4 => any_time().prop_map(Step::Pass),
    ]
}

fn any_word() -> impl Strategy<Value = Word> {
    select(vec![Word::Done, Word::NoEffect, Word::Nothing])
}

fn any_way() -> impl Strategy<Value = Duration> {
    prop_oneof![6 => Just(Duration::ZERO), 1 => any_time()]
}

/// Times at which something may change, and a little before.
fn any_time() -> impl Strategy<Value = Duration> {
    let edges = prop_oneof![6 => select(vec![LEASE / 3, LEASE / 2, LEASE]), 2 => select(vec![TIMEOUT, LEASE + TIMEOUT, KEPT])];
    (edges, any::<bool>()).prop_map(|(edge, before)| edge.saturating_sub(Duration::from_micros(before.into())))
}

/// Plays a history. `crash` kills the store's process and opens what it leaves behind, if it leaves anything.
pub fn play(world: World, history: &History, crash: impl Fn(World) -> Result<World, World>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut player = Player::new(world, history.again);
        for step in &history.steps {
            player = player.step(step, &crash).await;
            player.compare().await;
        }
        player.end().await;
    });
}
