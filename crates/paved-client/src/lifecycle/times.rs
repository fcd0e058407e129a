//! Spans between two times.

use function_paved_road::lifecycle::{Span, Unit};
use jiff::{SignedDuration, Timestamp};

/// The largest number of a [`Span`].
const MAX_AMOUNT: u32 = 99_999;

/// A time, or one second after the last of others.
pub(super) fn after<const N: usize>(time: Timestamp, others: [Option<Timestamp>; N]) -> Timestamp {
    let last = others.into_iter().flatten().max();
    let next = last.and_then(|last| last.checked_add(SignedDuration::from_secs(1)).ok());
    next.filter(|next| *next > time).unwrap_or(time)
}

/// The shortest span in the smallest unit that is at least as long; `None` if the length is not
/// positive, or too long for a span.
pub(super) fn covering(length: SignedDuration) -> Option<Span> {
    let units = [
        (1, Unit::Seconds),
        (60, Unit::Minutes),
        (3_600, Unit::Hours),
        (86_400, Unit::Days),
        (604_800, Unit::Weeks),
    ];
    units.into_iter().find_map(|(seconds, unit)| {
        let amount = (length.as_secs() + seconds - 1).div_euclid(seconds);
        let amount = u32::try_from(amount).ok()?;
        (1..=MAX_AMOUNT).contains(&amount).then_some(Span::For(amount, unit))
    })
}

/// The end of a span; `None` if the span has no end.
pub(super) fn end_of(begin: Timestamp, span: Span) -> Option<Timestamp> {
    begin.checked_add(span.length()?).ok()
}

/// The begin of a span that has this end.
pub(super) fn begin_of(end: Timestamp, span: Span) -> Option<Timestamp> {
    let end = Timestamp::from_second(end.as_second()).ok()?;
    end.checked_sub(span.length()?).ok()
}
