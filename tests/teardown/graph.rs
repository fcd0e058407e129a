//! The graph of what is composed: resources, the Usages between them, and what each needs to be
//! deleted.

use std::collections::{BTreeMap, BTreeSet};

use crossplane::api_version::group_of;
use serde_json::Value;

use crate::needs::{self, Need};

/// A composition on its way out.
pub struct Graph {
    /// Every slot but those of Usages, which go by themselves.
    slots: BTreeSet<String>,
    /// `of` cannot go while `by` is there.
    usages: Vec<(String, String)>,
    needs: Vec<Need>,
    /// Usages that protect nothing, or nobody: a mistake of their own.
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
                ends => dangling.push(format!("{slot} is between nothing and nobody: {ends:?}")),
            }
        }
        let slots =
            resources.iter().filter(|(_, object)| !is_usage(object)).map(|(slot, _)| slot.clone());
        Self { slots: slots.collect(), usages, needs: needs::of(resources), dangling }
    }

    /// Everything that can go wrong in some order.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.dangling.clone();
        problems.extend(self.broken());
        problems.extend(self.never_gone());
        problems
    }

    /// The resources that no order deletes. Every order deletes the same ones in the end, because a
    /// deletion never keeps another resource.
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

    /// Needs that some order breaks. Deleting never keeps anything else from going, so that an
    /// order which breaks a need exists only if it is one that spares whoever needs for as long as
    /// anything else can go.
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

    /// Deletes everything in one of the orders that the Usages allow.
    ///
    /// # Errors
    /// What was needed goes too early, or something never goes.
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

    /// What no Usage protects any more.
    fn free<'g>(&'g self, left: &'g BTreeSet<String>) -> impl Iterator<Item = &'g String> {
        let held =
            move |slot: &String| self.usages.iter().any(|(of, by)| of == slot && left.contains(by));
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
