//! Releases of Crossplane with known problems: one list for `paved doctor` and SUPPORT.md.

/// Major, minor and patch version.
pub type Version = (u32, u32, u32);

/// A known problem of some releases.
#[derive(Clone, Copy, Debug)]
pub struct Problem {
    /// The advisory, or the number of the issue at Crossplane's repository.
    pub id: &'static str,
    /// The page that describes the problem or its fix.
    pub source: &'static str,
    /// The effect, as the rest of a sentence about a release.
    pub effect: &'static str,
    /// The work of an operator besides the update, as the rest of a sentence. It may be
    /// empty.
    pub advice: &'static str,
    /// The first release with the problem, among those that we know of.
    pub since: Version,
    /// The first releases without the problem, one for each minor version, the newest first. All
    /// later minor versions lack the problem too.
    pub fixed: &'static [Version],
}

/// All known problems, the most severe first.
///
/// - GHSA-77cv-mrm6-fr3c: Crossplane deletes the resources in `spec.resourceRefs` of a composite,
///   if they have no controller and the annotation of composed resources. Any user may have written
///   the references. <https://github.com/crossplane/crossplane/pull/7627>, merged for 2.4.0, fixes
///   this. <https://github.com/crossplane/crossplane/pull/5876> introduced it in 1.17, and in later
///   releases of 1.15 and 1.16.
/// - v2.3.4: its release notes have the fix for composed Usages.
/// - Issue 7859: releases 1.20.11, 2.3.4 and 2.4.0 have the code that the issue quotes.
pub const PROBLEMS: &[Problem] = &[
    Problem {
        id: "GHSA-77cv-mrm6-fr3c",
        source: "https://github.com/crossplane/crossplane/pull/7627",
        effect: "may delete foreign resources that a user writes into spec.resourceRefs of a \
                 composite",
        advice: ", and keep the admission policies",
        since: (1, 15, 0),
        fixed: &[(2, 4, 0)],
    },
    Problem {
        id: "Updates of Usages",
        source: "https://github.com/crossplane/crossplane/releases/tag/v2.3.4",
        effect: "updates composed Usages repeatedly, so that changes of an environment wait for \
                 minutes",
        advice: "",
        since: (1, 20, 0),
        fixed: &[(2, 3, 4), (2, 2, 4), (2, 1, 8), (1, 20, 11)],
    },
    Problem {
        id: "Issue 7859",
        source: "https://github.com/crossplane/crossplane/issues/7859",
        effect: "writes the label of a used resource at each reconcile of its Usage, which costs \
                 requests",
        advice: "",
        since: (1, 20, 0),
        fixed: &[(2, 4, 3), (2, 2, 7)],
    },
];

impl Problem {
    /// Whether a release has the problem.
    pub fn affects(&self, version: Version) -> bool {
        let same_minor = |fix: &&Version| (fix.0, fix.1) == (version.0, version.1);
        let fix = self.fixed.iter().find(same_minor).or(self.fixed.first());
        version >= self.since && fix.is_none_or(|fix| version < *fix)
    }

    /// The releases with the fix: `2.4.3, 2.2.7`.
    pub fn fixes(&self) -> String {
        let fixes =
            self.fixed.iter().map(|(major, minor, patch)| format!("{major}.{minor}.{patch}"));
        fixes.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_is_affected_until_the_fix_of_its_minor_version() {
        let usages = &PROBLEMS[1];
        for (version, affected) in [
            ((1, 19, 9), false),
            ((1, 20, 10), true),
            ((1, 20, 11), false),
            ((2, 0, 7), true),
            ((2, 1, 7), true),
            ((2, 1, 8), false),
            ((2, 3, 3), true),
            ((2, 3, 4), false),
            ((2, 4, 0), false),
            ((3, 0, 0), false),
        ] {
            assert_eq!(usages.affects(version), affected, "{version:?}");
        }
        assert_eq!(usages.fixes(), "2.3.4, 2.2.4, 2.1.8, 1.20.11");
    }

    #[test]
    fn fixes_start_with_the_newest_and_follow_the_problem() {
        for problem in PROBLEMS {
            assert!(problem.fixed.is_sorted_by(|one, next| one > next), "{}", problem.id);
            assert!(problem.fixed.iter().all(|fix| *fix > problem.since), "{}", problem.id);
        }
    }
}
