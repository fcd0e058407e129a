//! OpenCV releases, from the wheels of the Python package index.
//!
//! A wheel's version has four parts: the release's three parts and a build number. `==4.8.0`
//! therefore matches no wheel. The list has the releases of both `opencv-python` and
//! `opencv-contrib-python-headless`. Only one wheel is ever installed, because each contains the
//! module `cv2`. `opencv-contrib-python-headless` is the superset that needs no display.

use crate::check::{self, Refused};

/// The wheel that is installed.
const PACKAGE: &str = "opencv-contrib-python-headless";

/// A release that users can choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// Three parts: `4.8.0`.
    pub version: &'static str,
    /// The builds of the wheel, oldest first, without withdrawn builds. A build is the fourth part
    /// of the wheel's version.
    pub builds: &'static [&'static str],
    /// The NumPy that it was built for. With another NumPy `import cv2` fails, or pip finds no
    /// solution.
    pub numpy: &'static str,
    /// The newest Python with wheels of the release and of its NumPy.
    pub newest_python: Option<&'static str>,
}

/// Every release, oldest first.
pub static RELEASES: &[Release] = &[
    release("4.4.0", &["46"], "numpy<2").until("3.9"),
    release("4.5.1", &["48"], "numpy<2").until("3.9"),
    release("4.5.3", &["56"], "numpy<2").until("3.9"),
    release("4.5.4", &["58", "60"], "numpy<2").until("3.10"),
    release("4.5.5", &["62", "64"], "numpy<2").until("3.12"),
    release("4.6.0", &["66"], "numpy<2").until("3.12"),
    release("4.7.0", &["68", "72"], "numpy<2").until("3.12"),
    release("4.8.0", &["76"], "numpy<2").until("3.12"),
    release("4.8.1", &["78"], "numpy<2").until("3.12"),
    release("4.9.0", &["80"], "numpy<2").until("3.12"),
    release("4.10.0", &["82", "84"], "numpy<2").until("3.12"),
    release("4.11.0", &["86"], "numpy<2").until("3.12"),
    release("4.12.0", &["88"], "numpy>=2,<2.3").until("3.13"),
    release("4.13.0", &["90", "92"], "numpy>=2"),
    release("4.14.0", &["94"], "numpy>=2"),
    release("5.0.0", &["93"], "numpy>=2"),
];

/// The packages that pip installs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The one OpenCV wheel: `opencv-contrib-python-headless==4.8.0.*`.
    pub opencv: String,
    /// The compatible NumPy.
    pub numpy: &'static str,
    /// The newest Python that the packages support, if it is limited.
    pub newest_python: Option<&'static str>,
}

/// The packages for a version that a user wrote. Three parts select the newest build, four parts
/// exactly that build.
pub fn requirement(asked: &str) -> Result<Requirement, Refused> {
    let parts: Vec<&str> = asked.split('.').take(5).collect();
    if !(3..=4).contains(&parts.len()) || !parts.iter().all(|part| is_number(part)) {
        return Err(unknown(asked));
    }
    let version = parts[..3].join(".");
    let release =
        RELEASES.iter().find(|release| release.version == version).ok_or_else(|| unknown(asked))?;
    let build = parts.get(3).unwrap_or(&"*");
    if parts.len() == 4 && !release.builds.contains(build) {
        let builds: Vec<String> =
            release.builds.iter().map(|build| format!("{version}.{build}")).collect();
        return Err(Refused::new(
            asked,
            format!("{version}, or a build of it: {}", builds.join(", ")),
        ));
    }
    Ok(Requirement {
        opencv: format!("{PACKAGE}=={version}.{build}"),
        numpy: release.numpy,
        newest_python: release.newest_python,
    })
}

fn unknown(asked: &str) -> Refused {
    let versions: Vec<&str> = RELEASES.iter().map(|release| release.version).collect();
    Refused::new(asked, check::suggestion(asked, &versions))
}

/// Up to four digits without leading zeros.
fn is_number(part: &str) -> bool {
    (1..=4).contains(&part.len())
        && part.bytes().all(|byte| byte.is_ascii_digit())
        && (part == "0" || !part.starts_with('0'))
}

const fn release(
    version: &'static str,
    builds: &'static [&'static str],
    numpy: &'static str,
) -> Release {
    Release { version, builds, numpy, newest_python: None }
}

impl Release {
    const fn until(self, python: &'static str) -> Self {
        Self { newest_python: Some(python), ..self }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn version_of_three_parts_selects_the_newest_build_and_of_four_the_exact_build() {
        let newest = requirement("4.8.0").unwrap();
        assert_eq!(newest.opencv, "opencv-contrib-python-headless==4.8.0.*");
        assert_eq!(newest.numpy, "numpy<2");
        assert_eq!(
            requirement("4.8.0.76").unwrap().opencv,
            "opencv-contrib-python-headless==4.8.0.76"
        );
    }

    #[test]
    fn numpy_follows_the_release() {
        assert_eq!(requirement("4.11.0").unwrap().numpy, "numpy<2");
        assert_eq!(requirement("4.12.0").unwrap().numpy, "numpy>=2,<2.3");
        assert_eq!(requirement("4.13.0").unwrap().numpy, "numpy>=2");
    }

    #[test]
    fn unknown_release_is_rejected_with_the_known_releases() {
        for asked in [
            "latest",
            "",
            "4",
            "4.8",
            "4.8.0.76.1",
            "v4.8.0",
            "4.08.0",
            "4.8.0.*",
            "4.8.0 ",
            "4.8.0;x",
            "4.8.0.-1",
            "4.8.0\n",
            "٤.٨.٠",
            "4.8.00",
            "4.2.0",
            "9.9.9",
            "4.8.0.99999",
        ] {
            let refused = requirement(asked).unwrap_err();
            assert!(refused.allowed.contains("4.4.0, 4.5.1"), "{asked:?}: {refused}");
            assert!(refused.found.starts_with(&format!("{asked:?}")), "{refused}");
        }
        let near = requirement("4.8.2").unwrap_err();
        assert!(near.allowed.ends_with(", 5.0.0 (nearest: 4.8.0)"), "{near}");
        assert!(requirement("latest").unwrap_err().allowed.ends_with(", 5.0.0"));
    }

    #[test]
    fn every_release_can_be_requested() {
        for release in RELEASES {
            let found = requirement(release.version).unwrap();
            assert_eq!(
                found.opencv,
                format!("opencv-contrib-python-headless=={}.*", release.version)
            );
        }
    }
}
