//! Which replies get lost: the ambiguity that a timeout stands for, since the command was carried out.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// Replies that get lost on their way back, each with its connection unless it is [silent](Self::silently).
///
/// Errors are passed on: nothing was carried out. So are pushes. Without [`of`](Self::of) the commands of a client's own, with
/// which it begins a connection, lose theirs like all others.
///
/// ```ignore
/// proxy.lose(Lose::next(1).of("EVALSHA"));      // the next script runs, and its asker sees the connection end
/// proxy.lose(Lose::chance(0.02).silently());    // the replies after it seem to answer the commands before
/// ```
#[derive(Clone, Debug)]
pub struct Lose {
    which: Which,
    of: Option<String>,
    fate: Fate,
}

#[derive(Clone, Copy, Debug)]
enum Which {
    Next(usize),
    Chance(f64),
}

/// What becomes of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Passed,
    Swallowed,
    Cut,
}

impl Lose {
    /// The next so many.
    pub fn next(replies: usize) -> Self {
        Self { which: Which::Next(replies), of: None, fate: Fate::Cut }
    }

    /// Each with this probability.
    pub fn chance(probability: f64) -> Self {
        Self { which: Which::Chance(probability), of: None, fate: Fate::Cut }
    }

    /// Only those to this command.
    pub fn of(mut self, command: &str) -> Self {
        self.of = Some(command.to_ascii_uppercase());
        self
    }

    /// The connection stays. A client that counts replies is out of step from there on.
    pub fn silently(mut self) -> Self {
        self.fate = Fate::Swallowed;
        self
    }
}

/// The losses in force, and chance.
#[derive(Debug)]
pub(super) struct Dice {
    lose: Option<Lose>,
    chance: StdRng,
}

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self { lose: None, chance: StdRng::seed_from_u64(seed) }
    }

    pub fn lose(&mut self, lose: Option<Lose>) {
        self.lose = lose;
    }

    /// The fate of the next reply to a command.
    pub fn throw(&mut self, command: &str) -> Fate {
        let Some(lose) = &mut self.lose else { return Fate::Passed };
        if lose.of.as_ref().is_some_and(|of| of != command) {
            return Fate::Passed;
        }
        let lost = match &mut lose.which {
            Which::Next(0) => false,
            Which::Next(left) => {
                *left -= 1;
                true
            }
            Which::Chance(probability) => self.chance.random_bool(*probability),
        };
        if lost { lose.fate } else { Fate::Passed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_ones_are_lost_and_no_more() {
        let mut dice = Dice::new(1);
        assert_eq!(dice.throw("GET"), Fate::Passed);
        dice.lose(Some(Lose::next(2).of("evalsha")));
        let fates = ["EVALSHA", "GET", "EVALSHA", "EVALSHA"].map(|command| dice.throw(command));
        assert_eq!(fates, [Fate::Cut, Fate::Passed, Fate::Cut, Fate::Passed]);
    }

    #[test]
    fn chance_is_the_same_for_the_same_seed() {
        let fates = |seed| {
            let mut dice = Dice::new(seed);
            dice.lose(Some(Lose::chance(0.25).silently()));
            std::iter::repeat_with(|| dice.throw("GET")).take(1_000).collect::<Vec<_>>()
        };
        assert_eq!(fates(7), fates(7));
        assert_ne!(fates(7), fates(8));
        let lost = fates(7).iter().filter(|fate| **fate == Fate::Swallowed).count();
        assert!((200..300).contains(&lost), "{lost}");
    }
}
