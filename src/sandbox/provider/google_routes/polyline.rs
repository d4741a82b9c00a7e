//! Google's encoding of a line as text.

use crate::sandbox::gazetteer::point::Point;

/// The points of a line, each as the difference to the one before.
pub fn encoded(points: &[Point]) -> String {
    let mut text = String::new();
    let mut last = [0_i32; 2];
    for point in points {
        let now = [point.lat, point.lng].map(hundred_thousandths);
        for (now, last) in now.iter().zip(last) {
            push(&mut text, now.wrapping_sub(last));
        }
        last = now;
    }
    text
}

/// Degrees never exceed 180, so the number always fits.
#[allow(clippy::cast_possible_truncation, reason = "at most 18,000,000; a float cast saturates anyway")]
fn hundred_thousandths(degrees: f64) -> i32 {
    (degrees * 1e5).round() as i32
}

fn push(text: &mut String, difference: i32) {
    let mut bits = ((difference << 1) ^ (difference >> 31)).cast_unsigned();
    loop {
        let more = bits >= 0x20;
        let chunk = (bits & 0x1F) | if more { 0x20 } else { 0 };
        text.extend(char::from_u32(chunk.wrapping_add(63)));
        bits >>= 5;
        if !more {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_example_comes_out() {
        let line = [(38.5, -120.2), (40.7, -120.95), (43.252, -126.453)].map(|(lat, lng)| Point { lat, lng });
        assert_eq!(encoded(&line), "_p~iF~ps|U_ulLnnqC_mqNvxq`@");
    }
}
