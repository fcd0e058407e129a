//! The tags that each service accepts.
//!
//! Sources: the API references of IAM, S3, RDS and CloudFront give the pattern
//! `[\p{L}\p{Z}\p{N}_.:/=+\-@]*` for keys and values. According to EC2's user guide, EC2 accepts
//! any character. According to IAM's user guide ("Rules for tagging"), IAM compares keys without
//! case. Azure: "Use tags to organize your Azure resources", section limitations. Google Cloud:
//! "Requirements for labels".

use std::collections::BTreeMap;

use crate::check::{self, Refused};
use crate::error::FieldError;
use crate::models::{Kind, Provider};
use crate::settings::Common;

/// The keys of the tags that name the environment, its namespace and its owner.
const ATTRIBUTION: [&str; 3] = ["environment", "namespace", "owner"];

/// The longest value of a tag, in characters. Source: the same references.
const LONGEST_VALUE: usize = 256;

/// The tags that a service accepts.
struct Rule {
    /// The service's name in messages.
    service: &'static str,
    /// The maximum number of tags on a resource. The provider's own tags count too.
    most: usize,
    by_provider: &'static [&'static str],
    /// Whether keys and values are limited to the characters that all services of AWS accept.
    plain: bool,
    /// Beginnings that keys must not have, in lower case.
    reserved: &'static [&'static str],
    /// Whether two keys that differ only in case are the same key.
    ignores_case: bool,
}

/// The beginning of keys and values that AWS reserves.
const RESERVED_AWS: &str = "aws:";

/// Tags that provider-upjet-aws adds to every resource.
const BY_PROVIDER_AWS: &[&str] =
    &["crossplane-kind", "crossplane-name", "crossplane-providerconfig"];

const EC2: Rule = Rule {
    service: "EC2",
    most: 50,
    by_provider: BY_PROVIDER_AWS,
    plain: false,
    reserved: &[RESERVED_AWS],
    ignores_case: false,
};
const EKS: Rule = Rule { service: "EKS", ..EC2 };
const IAM: Rule = Rule { service: "IAM", plain: true, ignores_case: true, ..EC2 };
const S3: Rule = Rule { service: "S3", plain: true, ..EC2 };
const CLOUDFRONT: Rule = Rule { service: "CloudFront", plain: true, ..EC2 };
const RDS: Rule = Rule { service: "RDS", plain: true, reserved: &[RESERVED_AWS, "rds:"], ..EC2 };
const AZURE: Rule = Rule {
    service: "Azure",
    by_provider: &[],
    reserved: &["microsoft", "azure", "windows"],
    ignores_case: true,
    ..EC2
};
const GOOGLE: Rule =
    Rule { service: "Google Cloud", most: 64, by_provider: &[], reserved: &[], ..EC2 };

/// The rule of a kind with tags.
fn rule(kind: &Kind) -> &'static Rule {
    match (kind.provider, kind.service) {
        (Provider::Gcp, _) => &GOOGLE,
        (Provider::Azure, _) => &AZURE,
        (_, "iam") => &IAM,
        (_, "s3") => &S3,
        (_, "cloudfront") => &CLOUDFRONT,
        (_, "rds") => &RDS,
        (_, "eks") => &EKS,
        _ => &EC2,
    }
}

/// The keys of the tags that name the environment, its namespace and its owner. A tag of Settings
/// with the same key replaces such a tag. The case of letters makes no difference, because some
/// services ignore it.
pub fn attribution(settings: &Common) -> impl Iterator<Item = &'static str> {
    let taken = settings.tags.keys().chain(settings.tags_from_labels.keys());
    ATTRIBUTION
        .into_iter()
        .filter(move |key| taken.clone().all(|one| !one.eq_ignore_ascii_case(key)))
}

/// A user's text as the value of a tag: an underscore replaces each character that the service
/// rejects.
pub fn valid(kind: &Kind, value: &str) -> String {
    let is_aws = kind.provider == Provider::Aws;
    let is_valid = |c: char| !check::is_invisible(c) && (!is_aws || is_plain(c));
    let fit = |c: char| if is_valid(c) { c } else { '_' };
    let fitted: String = value.trim().chars().map(fit).take(LONGEST_VALUE).collect();
    let fitted = fitted.trim();
    match fitted.get(..RESERVED_AWS.len()) {
        Some(start) if is_aws && start.eq_ignore_ascii_case(RESERVED_AWS) => {
            fitted.replacen(':', "_", 1)
        }
        _ => fitted.to_owned(),
    }
}

/// The errors of the tags of Settings for resources of a kind, with the path of each tag below
/// `settings`. `own` are the keys of the resource's own tags. An own tag wins over a tag of
/// Settings with the same key.
pub fn check(kind: &Kind, settings: &Common, own: &[&str]) -> Vec<FieldError> {
    let rule = rule(kind);
    let mut wrong = Vec::new();
    let mut carried: BTreeMap<String, &str> = BTreeMap::new();
    let same = |key: &str| if rule.ignores_case { key.to_lowercase() } else { key.to_owned() };
    let taken: Vec<&str> = own.iter().chain(rule.by_provider).copied().collect();
    let fixed = settings.tags.iter().map(|(key, value)| ("tags", key, value.as_str()));
    let from_labels = settings.tags_from_labels.keys().map(|key| ("tagsFromLabels", key, ""));
    let tags = fixed.chain(from_labels.filter(|(_, key, _)| !settings.tags.contains_key(*key)));
    for (field, key, value) in tags.filter(|(_, key, _)| !taken.contains(&key.as_str())) {
        let (label, _) = kind.provider.tag(key, value);
        let refusal = rule.refusal(key, value).or_else(|| {
            let other = taken.iter().find(|other| same(other) == same(&label));
            other
                .map(|other| rule.twin(&label, other, "which Paved Road or the provider sets"))
                .or_else(|| {
                    let other = carried.get(&same(&label))?;
                    Some(rule.twin(&label, other, "another tag in Settings"))
                })
        });
        carried.insert(same(&label), key);
        let path = check::shown(&format!("settings.{field}.{key}"));
        wrong.extend(refusal.map(|message| FieldError { path, message }));
    }
    let room = rule.most.saturating_sub(taken.len());
    if carried.len() > room {
        let message = format!(
            "found {} tags; allowed: at most {room}, because {} allows {} on a resource{}",
            carried.len(),
            rule.service,
            rule.most,
            if taken.is_empty() {
                String::new()
            } else {
                format!(", including {}", taken.join(", "))
            }
        );
        wrong.push(FieldError { path: "settings.tags".to_owned(), message });
    }
    wrong
}

impl Rule {
    /// The reason why the service rejects a tag, regardless of other tags.
    fn refusal(&self, key: &str, value: &str) -> Option<String> {
        let lower = key.to_lowercase();
        if let Some(reserved) = self.reserved.iter().find(|reserved| lower.starts_with(**reserved))
        {
            let allowed = format!(
                "a key that does not start with {reserved}, which {} reserves",
                self.service
            );
            return Some(Refused::new(key, allowed).to_string());
        }
        let unfit =
            [key, value].into_iter().find(|text| self.plain && !text.chars().all(is_plain))?;
        let allowed = format!("letters, digits, spaces and _ . : / = + - @ (for {})", self.service);
        Some(Refused::new(unfit, allowed).to_string())
    }

    /// The reason why a tag collides with another tag.
    fn twin(&self, label: &str, other: &str, whose: &str) -> String {
        let other = check::quoted(other);
        if self.ignores_case {
            let service = self.service;
            return format!(
                "the same key as {other}, {whose}, because {service} ignores case. Rename one of \
                 the keys"
            );
        }
        let label = check::quoted(label);
        format!(
            "becomes the label {label} on {}, like {other}, {whose}. Rename one of the tags",
            self.service
        )
    }
}

/// The characters that all services of AWS accept in tags.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || c.is_whitespace() || "_.:/=+-@".contains(c)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::models::aws::{cloudfront, ec2, eks, iam, rds, s3};
    use crate::models::{Managed, azure, gcp};

    const ROLE: Kind = iam::Role::KIND;
    const BUCKET: Kind = s3::Bucket::KIND;
    const MACHINE: Kind = ec2::Instance::KIND;
    const AKS: Kind = azure::KubernetesCluster::KIND;
    const GKE: Kind = gcp::Cluster::KIND;

    fn tags<const N: usize>(tags: [(&str, &str); N]) -> BTreeMap<String, String> {
        tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
    }

    /// The first message, with its path.
    fn refusal(kind: &Kind, tags: &BTreeMap<String, String>, own: &[&str]) -> Option<String> {
        let settings = Common { tags: tags.clone(), ..Common::default() };
        check(kind, &settings, own).first().map(ToString::to_string)
    }

    #[test]
    fn tag_of_settings_replaces_that_of_the_owner_in_any_case() {
        let mut settings = Common { tags: tags([("Owner", "platform")]), ..Common::default() };
        assert_eq!(attribution(&settings).collect::<Vec<_>>(), ["environment", "namespace"]);
        settings.tags_from_labels = tags([("ENVIRONMENT", "stage")]);
        assert_eq!(attribution(&settings).collect::<Vec<_>>(), ["namespace"]);
        assert_eq!(check(&ROLE, &settings, &["namespace"]), []);
    }

    #[test]
    fn key_of_a_tag_from_a_label_is_checked_like_a_fixed_key() {
        let mut settings = Common {
            tags_from_labels: tags([("R&D", "department"), ("team", "team")]),
            ..Common::default()
        };
        let wrong = check(&ROLE, &settings, &[]);
        let paths: Vec<&str> = wrong.iter().map(|wrong| wrong.path.as_str()).collect();
        assert_eq!(paths, ["settings.tagsFromLabels.R&D"]);
        assert_eq!(check(&MACHINE, &settings, &[]), []);
        settings.tags = tags([("Team", "vision")]);
        let twin = check(&AKS, &settings, &[]).pop().unwrap();
        assert_eq!(twin.path, "settings.tagsFromLabels.team");
        settings.tags = tags([("team", "vision")]);
        assert_eq!(check(&AKS, &settings, &[]), [], "the tag for environments without the label");
    }

    #[test]
    fn text_of_a_user_becomes_a_value_that_each_cloud_accepts() {
        for (text, aws, azure, google) in [
            ("ada@acme.io", "ada@acme.io", "ada@acme.io", "ada_acme_io"),
            ("Ada (R&D)", "Ada _R_D_", "Ada (R&D)", "ada__r_d_"),
            (" a\u{1b}[1m\n", "a__1m", "a_[1m", "a__1m"),
            ("aws:root", "aws_root", "aws:root", "aws_root"),
            ("AWS:root", "AWS_root", "AWS:root", "aws_root"),
            ("Équipe 冷", "Équipe 冷", "Équipe 冷", "_quipe__"),
            (" ", "", "", ""),
        ] {
            for (kind, expected) in [(&ROLE, aws), (&MACHINE, aws), (&AKS, azure), (&GKE, google)] {
                let (_, value) = kind.provider.tag("owner", &valid(kind, text));
                assert_eq!(value, expected, "{text:?} on {kind:?}");
            }
        }
        assert_eq!(valid(&BUCKET, &"é".repeat(300)).chars().count(), 256);
    }

    #[test]
    fn characters_are_checked_by_the_service_that_carries_the_tag() {
        let department = tags([("department", "R&D (Vision)")]);
        let message = |service: &str| {
            format!(
                "settings.tags.department: found \"R&D (Vision)\"; allowed: letters, digits, \
                 spaces and _ . : / = + - @ (for {service})"
            )
        };
        for (kind, service) in [
            (&ROLE, "IAM"),
            (&BUCKET, "S3"),
            (&rds::Instance::KIND, "RDS"),
            (&cloudfront::Distribution::KIND, "CloudFront"),
        ] {
            assert_eq!(refusal(kind, &department, &[]), Some(message(service)));
        }
        for kind in [&MACHINE, &eks::Cluster::KIND, &AKS, &GKE] {
            assert_eq!(refusal(kind, &department, &[]), None);
        }
        let fine = tags([("acme.io/Équipe", "a_b.c:d/e=f+g-h@i 冷"), ("empty", "")]);
        for kind in [&ROLE, &BUCKET, &MACHINE, &AKS, &GKE] {
            assert_eq!(refusal(kind, &fine, &[]), None);
        }
    }

    #[test]
    fn keys_differing_in_case_collide_in_case_insensitive_services() {
        let own = ["Name", "ManagedBy"];
        let clash = "settings.tags.name: the same key as \"Name\", which Paved Road or the \
                     provider \
                     sets, because IAM ignores case. Rename one of the keys";
        assert_eq!(refusal(&ROLE, &tags([("name", "x")]), &own).as_deref(), Some(clash));
        assert_eq!(refusal(&MACHINE, &tags([("name", "x")]), &own), None);
        assert_eq!(refusal(&ROLE, &tags([("Name", "x")]), &own), None, "our own tag wins");
        let twins = tags([("Team", "a"), ("team", "b")]);
        for (kind, collides) in [(&ROLE, true), (&AKS, true), (&BUCKET, false), (&MACHINE, false)] {
            assert_eq!(refusal(kind, &twins, &[]).is_some(), collides, "{kind:?}");
        }
    }

    #[test]
    fn two_tags_that_become_one_label_are_refused() {
        let twins = tags([("Cost Center", "4711"), ("cost_center", "0816")]);
        let message = "settings.tags.cost_center: becomes the label \"cost_center\" on Google Cloud, \
                       like \"Cost Center\", another tag in Settings. Rename one of the tags";
        assert_eq!(refusal(&GKE, &twins, &[]).as_deref(), Some(message));
        assert_eq!(refusal(&BUCKET, &twins, &[]), None);
        assert!(refusal(&AKS, &tags([("a/b", "1"), ("a?b", "2")]), &[]).is_some());
    }

    #[test]
    fn number_of_tags_counts_those_of_paved_road_and_the_provider() {
        let many = |count: usize| (0..count).map(|n| (format!("key{n}"), String::new())).collect();
        assert_eq!(refusal(&ROLE, &many(44), &["Name", "ManagedBy", "WorkspaceOwner"]), None);
        let message = "settings.tags: found 45 tags; allowed: at most 44, because IAM allows 50 \
                       on a resource, \
                       including Name, ManagedBy, WorkspaceOwner, crossplane-kind, crossplane-name, \
                       crossplane-providerconfig";
        let refused = refusal(&ROLE, &many(45), &["Name", "ManagedBy", "WorkspaceOwner"]);
        assert_eq!(refused.as_deref(), Some(message));
        assert_eq!(refusal(&GKE, &many(64), &[]), None);
        assert!(refusal(&GKE, &many(65), &[]).is_some());
    }

    #[test]
    fn reserved_beginnings_are_refused_by_the_service_that_reserves_them() {
        let refused = |kind: &Kind, key: &str| refusal(kind, &tags([(key, "x")]), &[]).is_some();
        assert!(refused(&rds::Instance::KIND, "RDS:team") && !refused(&BUCKET, "rds:team"));
        assert!(refused(&AKS, "Windows-team") && !refused(&MACHINE, "Windows-team"));
    }
}
