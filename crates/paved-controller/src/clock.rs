//! The clocks of the controller.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

/// Two clocks. The wall clock says the time, and may be wrong or jump. The steady clock says
/// how much time has passed, and never jumps.
#[derive(Clone)]
pub struct Clock {
    wall: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    steady: Arc<dyn Fn() -> Duration + Send + Sync>,
}

impl Clock {
    /// The clocks of this machine.
    pub fn system() -> Self {
        let begin = Instant::now();
        Self::new(Timestamp::now, move || begin.elapsed())
    }

    /// Other clocks, for tests. `steady` returns the time since any fixed moment.
    pub fn new(
        wall: impl Fn() -> Timestamp + Send + Sync + 'static,
        steady: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Self {
        Self { wall: Arc::new(wall), steady: Arc::new(steady) }
    }

    /// The time of the wall clock.
    pub(crate) fn now(&self) -> Timestamp {
        (self.wall)()
    }

    /// The time of the steady clock.
    pub(crate) fn steady(&self) -> Duration {
        (self.steady)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Clock({})", self.now())
    }
}
