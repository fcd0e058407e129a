//! The graph of composed resources: the Usages between them, and the needs of each for its
//! deletion.

use std::collections::{BTreeMap, BTreeSet};

use crossplane::api_version::group_of;
use crossplane::names::PAUSED;
use serde_json::Value;

use crate::needs::{self, Need};

/// A composition that is being deleted.
pub struct Graph {
    /// All slots except those of Usages, whose deletion needs no order.
    slots: BTreeSet<String>,
    /// `of` cannot be deleted while `by` exists.
    usages: Vec<(String, String)>,
    needs: Vec<Need>,
    /// Slots of paused resources. Their providers do not release them.
    paused: BTreeSet<String>,
    /// Usages without an existing resource at one end, which is an error of its own.
    dangling: Vec<String>,
}

impl Graph {
    /// The graph of composed resources by slot.
    pub fn of(resources: &BTreeMap<String, Value>) -> Self {
        let is_usage = |object: &Value| {
            object["kind"].as_str().is_some_and(|kind| ["Usage", "ClusterUsage"].contains(&kind))
        };
        let (mut usages, mut dangling) = (Vec::new(), Vec::new());
        for (slot, usage) in resources.iter().filter(|(_, object)| is_usage(object)) {
            match ["of", "by"].map(|end| named(resources, &usage["spec"][end])) {
                [Some(of), Some(by)] => usages.push((of, by)),
                ends => dangling.push(format!("{slot} lacks the resource at an end: {ends:?}")),
            }
        }
        let slots =
            resources.iter().filter(|(_, object)| !is_usage(object)).map(|(slot, _)| slot.clone());
        let paused = resources
            .iter()
            .filter(|(_, object)| object["metadata"]["annotations"][PAUSED] == "true")
            .map(|(slot, _)| slot.clone());
        Self {
            slots: slots.collect(),
            usages,
            needs: needs::of(resources),
            paused: paused.collect(),
            dangling,
        }
    }

    /// All errors that some order of deletion causes.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.dangling.clone();
        problems.extend(self.broken());
        problems.extend(self.never_gone());
        problems
    }

    /// The resources that no order deletes. All orders delete the same resources, because a
    /// deletion never blocks another one.
    fn never_gone(&self) -> Option<String> {
        let mut left = self.slots.clone();
        loop {
            let next = self.free(&left).next().cloned();
            let Some(next) = next else { break };
            left.remove(&next);
        }
        let left: Vec<String> = left.into_iter().collect();
        (!left.is_empty()).then(|| format!("never gone: {}", left.join(", ")))
    }

    /// Needs that some order breaks. A deletion never blocks another one. So it is enough to check
    /// the order that deletes the resource with the need as late as possible.
    fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        for need in &self.needs {
            let mut left = self.slots.clone();
            loop {
                let next = self.free(&left).find(|slot| **slot != need.who).cloned();
                let Some(next) = next else { break };
                left.remove(&next);
            }
            if !left.contains(&need.what) {
                broken.push(need.to_string());
            }
        }
        broken
    }

    /// The number of Usages in the longest chain. Crossplane may take half a minute for each.
    pub fn levels(&self) -> usize {
        self.slots.iter().map(|slot| self.levels_above(slot)).max().unwrap_or_default()
    }

    fn levels_above(&self, slot: &str) -> usize {
        let by = self.usages.iter().filter(|(of, _)| of == slot);
        by.map(|(_, by)| 1 + self.levels_above(by)).max().unwrap_or_default()
    }

    /// The slots that more than one Usage protects. Crossplane may release such a resource when the
    /// first Usage ends.
    pub fn protected_twice(&self) -> Vec<&str> {
        let count = |slot: &str| self.usages.iter().filter(|(of, _)| of == slot).count();
        self.slots.iter().map(String::as_str).filter(|slot| count(slot) > 1).collect()
    }

    /// Deletes all resources in one of the orders that the Usages allow.
    ///
    /// # Errors
    /// A resource is deleted before another one that needs it, or it is never deleted.
    pub fn delete(&self, seed: u64) -> Result<(), String> {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut left = self.slots.clone();
        while !left.is_empty() {
            let free: Vec<String> = self.free(&left).cloned().collect();
            if free.is_empty() {
                return Err(format!(
                    "never gone: {}",
                    left.into_iter().collect::<Vec<_>>().join(", ")
                ));
            }
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let next = &free[usize::try_from(random % u64::try_from(free.len()).unwrap()).unwrap()];
            left.remove(next);
            let broken =
                self.needs.iter().find(|need| need.what == *next && left.contains(&need.who));
            if let Some(need) = broken {
                return Err(need.to_string());
            }
        }
        Ok(())
    }

    /// The resources that nothing protects any more.
    fn free<'g>(&'g self, left: &'g BTreeSet<String>) -> impl Iterator<Item = &'g String> {
        let held = move |slot: &String| {
            self.paused.contains(slot)
                || self.usages.iter().any(|(of, by)| of == slot && left.contains(by))
        };
        left.iter().filter(move |slot| !held(slot))
    }
}

/// The slot of the resource at one end of a Usage.
fn named(resources: &BTreeMap<String, Value>, end: &Value) -> Option<String> {
    let found = resources.iter().find(|(_, object)| {
        object["kind"] == end["kind"]
            && object["metadata"]["name"] == end["resourceRef"]["name"]
            && group_of(object) == group_of(end)
    });
    found.map(|(slot, _)| slot.clone())
}
