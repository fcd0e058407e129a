//! Formats times for people.

use std::time::Duration;

use jiff::Timestamp;

/// The age of a time, in kubectl's format: `42s`, `5m`, `3h12m`, `4d`. A time in the future shows
/// `0s`.
pub fn age(then: Option<Timestamp>, now: Timestamp) -> String {
    let Some(then) = then else { return String::new() };
    spell(Duration::from_secs(
        now.as_second().saturating_sub(then.as_second()).try_into().unwrap_or(0),
    ))
}

/// The time that is left until `end`: `3h12m`. `None` if the end is not ahead.
pub fn until(end: Timestamp, now: Timestamp) -> Option<String> {
    let left = u64::try_from(end.as_second().saturating_sub(now.as_second())).ok()?;
    (left > 0).then(|| spell(Duration::from_secs(left)))
}

/// A time in its two largest units.
pub fn spell(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let pair = |large: u64, unit: char, small: u64, below: char| {
        if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{below}") }
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => pair(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..36_000 => pair(hours, 'h', minutes % 60, 'm'),
        36_000..172_800 => format!("{hours}h"),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn age_is_coarser_for_older_times() {
        for (seconds, text) in [
            (0, "0s"),
            (119, "119s"),
            (180, "3m"),
            (185, "3m5s"),
            (1800, "30m"),
            (11_520, "3h12m"),
            (40_000, "11h"),
            (400_000, "4d"),
        ] {
            assert_eq!(spell(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn time_left_ends_with_the_end() {
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(until(at(100), at(58)).as_deref(), Some("42s"));
        assert_eq!(until(at(100), at(100)), None);
        assert_eq!(until(at(100), at(142)), None);
    }

    #[test]
    fn age_of_a_future_time_is_zero() {
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(age(Some(at(100)), at(50)), "0s");
        assert_eq!(age(Some(at(100)), at(142)), "42s");
        assert_eq!(age(None, at(142)), "");
    }
}
