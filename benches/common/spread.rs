//! Several rounds' measure of one thing. The machine is shared: what varies is to be seen.

use std::fmt;

/// The least, the median and the most; not numbers, if no round has measured anything.
#[derive(Clone, Copy)]
pub struct Spread {
    pub least: f64,
    pub median: f64,
    pub most: f64,
}

impl Spread {
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().filter(|value| !value.is_nan()).collect();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        Self { least: at(0), median: at(values.len() / 2), most: at(values.len().saturating_sub(1)) }
    }
}

impl fmt::Display for Spread {
    /// `LEAST to MOST`, in the precision asked for, else two digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        write!(f, "{:.digits$} to {:.digits$}", self.least, self.most)
    }
}
