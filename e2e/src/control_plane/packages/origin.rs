//! Packages find each other by the registry and the release of their build. Packages for another
//! registry or release would wait for a Function that does not exist here.

use anyhow::{Result, ensure};
use serde_json::Value;
use xtask::package::{Args, configuration};

/// Returns an error unless a Configuration with these contents depends on the Function of the
/// flags.
pub fn check(contents: &[Value], args: &Args) -> Result<()> {
    let dependencies =
        contents.iter().filter_map(|object| object["spec"]["dependsOn"].as_array()).flatten();
    let found: Vec<_> = dependencies.filter(|one| one["kind"] == "Function").map(named).collect();
    let wanted = named(&configuration::function(args));
    ensure!(
        found == [wanted.as_str()],
        "the Configurations depend on {}, expected {wanted}: build the packages with neither --registry nor --release",
        found.join(", ")
    );
    Ok(())
}

/// For example `ghcr.io/acme/function-paved-road >=v0.1.0-0`.
fn named(dependency: &Value) -> String {
    ["package", "version"].map(|key| dependency[key].as_str().unwrap_or_default()).join(" ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use function_paved_road::apis::{APIS, Flavour};
    use xtask::package::configuration::Contents;

    use super::*;

    #[test]
    fn packages_for_another_registry_or_of_another_release_are_refused() {
        let here = Args::default();
        let checked = |built: &Args| {
            let configuration = Contents::new(built, APIS[0], Flavour::Claims).unwrap();
            check(&[configuration.meta, configuration.xrd], &here)
        };
        checked(&here).unwrap();
        let registry = "ghcr.io/acme".parse().unwrap();
        let error = checked(&Args { registry, ..Args::default() }).unwrap_err().to_string();
        assert!(error.contains("depend on ghcr.io/acme/function-paved-road >="), "{error}");
        let error = checked(&Args { release: "v9.0.0".to_owned(), ..Args::default() })
            .unwrap_err()
            .to_string();
        let expected = format!(">=v9.0.0-0, expected {}/", here.registry);
        assert!(error.contains(&expected), "{error}");
    }
}
