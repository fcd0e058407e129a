//! Finds names with a hash of the file's content, as bundlers write them.
//!
//! A doubtful name counts as a name without a hash. One more request costs little, but a file that
//! is wrongly cached for a year cannot be recalled.

use std::collections::BTreeSet;

/// The folders with a bundler's output.
#[derive(Debug, Default)]
pub(super) struct Fingerprints {
    bundled: BTreeSet<String>,
}

impl Fingerprints {
    /// A name with an obvious hash shows that a bundler wrote its folder.
    pub(super) fn among<'k>(keys: impl Iterator<Item = &'k str>) -> Self {
        let beyond_doubt = keys.map(split).filter(|(_, name)| is_plain(name));
        Self { bundled: beyond_doubt.map(|(folder, _)| folder.to_owned()).collect() }
    }

    /// Whether a file's name has a hash.
    pub(super) fn has(&self, key: &str) -> bool {
        let (folder, name) = split(key);
        is_plain(name) || self.bundled.contains(folder) && is_likely(name)
    }
}

/// Folder and name.
fn split(key: &str) -> (&str, &str) {
    key.rsplit_once('/').unwrap_or(("", key))
}

/// Whether a name has an obvious hash: `app-1a2b3c4d.js`, `main.5QXZ3KJV.css`, `index-BfLp4nCs.js`.
/// Dates and words are not hashes.
fn is_plain(name: &str) -> bool {
    let mut pieces = name.split(['.', '-', '_', '~']);
    // The first piece is the file's own name, unless it is the only piece before the extension.
    let alone = name.split('.').count() == 2 && name.split(['-', '_', '~']).count() == 1;
    if !alone {
        pieces.next();
    }
    pieces.any(is_hash)
}

/// Whether letters and digits alternate as in a hash. A word with a number at its end does not
/// count.
fn is_hash(piece: &str) -> bool {
    const MIN_LEN: usize = 8;
    const MAX_LEN: usize = 64;
    let has = |test: fn(&char) -> bool| piece.chars().any(|c| test(&c));
    let (lower, upper) = (has(char::is_ascii_lowercase), has(char::is_ascii_uppercase));
    let changes = match (lower, upper) {
        (true, false) if is_hexadecimal(piece) => 2,
        (false, true) => 2,
        (true, true) => 4,
        _ => return false,
    };
    let plain = piece.chars().all(|c| c.is_ascii_alphanumeric()) && has(char::is_ascii_digit);
    plain && (MIN_LEN..=MAX_LEN).contains(&piece.len()) && alternations(piece) >= changes
}

fn is_hexadecimal(piece: &str) -> bool {
    piece.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
}

/// The number of changes between digits, upper case and other characters.
fn alternations(piece: &str) -> usize {
    let kind = |c: &u8| (c.is_ascii_digit(), c.is_ascii_uppercase());
    piece.as_bytes().windows(2).filter(|pair| kind(&pair[0]) != kind(&pair[1])).count()
}

/// Whether a name has eight characters before its extension as Vite, Rollup and esbuild write them.
/// They may all be letters, and with Vite and Rollup also `-` and `_`. Examples:
/// `index-CoJyNNAh.css`, `about._IcwKZoH.js`, `main-QWERTZUI.js`. Words and numbers do not count.
fn is_likely(name: &str) -> bool {
    const LENGTH: usize = 8;
    let stem =
        name.strip_suffix(".map").unwrap_or(name).rsplit_once('.').map_or("", |(stem, _)| stem);
    let Some((before, hash)) =
        stem.len().checked_sub(LENGTH).and_then(|at| stem.split_at_checked(at))
    else {
        return false;
    };
    let base64 = hash.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let chance = hash.contains(|c: char| c.is_ascii_uppercase()) || is_hexadecimal(hash);
    before.len() > 1
        && before.ends_with(['-', '.'])
        && base64
        && chance
        && !hash.split(['-', '_']).all(is_word)
}

/// Whether the text is a word or several capitalised words, for example `DarkMode`. A number at the
/// end is allowed. Two letters always count as a word.
fn is_word(piece: &str) -> bool {
    let word = piece.trim_end_matches(|c: char| c.is_ascii_digit()).as_bytes();
    let begins = |at: usize| {
        word.get(at + 1..at + 3).is_some_and(|two| two.iter().all(u8::is_ascii_lowercase))
    };
    let fits =
        |(at, c): (usize, &u8)| c.is_ascii_lowercase() || c.is_ascii_uppercase() && begins(at);
    word.len() <= 2 || word.iter().enumerate().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_hash_in_a_name_is_recognized() {
        for key in [
            "assets/index-BfLp4nCs.js",
            "static/js/main.073c9b0a.chunk.js",
            "main-XJ2KTNAB.js",
            "app.3f2a9c1b7d.css",
            "assets/logo-5d41402abc4b2a76b9719d911017c592.svg",
            "media/5d41402abc4b2a76b9719d911017c592.png",
            "app-1a2b3c4d.js.map",
        ] {
            assert!(Fingerprints::default().has(key), "{key}");
        }
        for key in [
            "index.html",
            "report-20240115.pdf",
            "assets/index.js",
            "jquery-3.7.1.min.js",
            "deadbeef.js",
            "background.png",
            "vendor-DataGrid.js",
            "user-Guide2024.pdf",
            "the-decade2024.png",
            "notes-RELEASE1.txt",
            "1a2b3c4d/app.js",
            "IMG_20240115.JPG",
            "roboto-v30-latin.woff2",
            "index-CoJyNNAh.css",
            "a.js",
            "",
        ] {
            assert!(!Fingerprints::default().has(key), "{key}");
        }
    }

    /// Output of these bundlers. Every name in these folders has a hash.
    #[test]
    fn bundler_folder_is_recognized_by_each_of_its_names() {
        let vite = [
            "index-DNdzdKvx.css",
            "index-Dv6VGLub.js",
            "index-DFfilvpO.css",
            "vendor-ConSr3PY.js",
            "index-CoJyNNAh.css",
            "index-DYIkqkhu.js",
            "index-DYIkqkhu.js.map",
            "index-BmtrZPm_.css",
            "index-CNWoupNg.js",
        ];
        let rollup = [
            "utils.8L8ZNlhE.css",
            "index._deYuKRK.css",
            "repo-list.KTrC4ioP.js",
            "CloseOutlined.Ac2Sglwr.js",
            "col.KPyWUTbA.js",
            "about._IcwKZoH.js",
        ];
        let esbuild = [
            "styles-GLFUI4XR.css",
            "polyfills-5CFQRCPP.js",
            "main-J4DOFAYI.js",
            "main-QWERTZUI.js",
            "image-CQFGD2NG.png",
        ];
        for names in [&vite[..], &rollup, &esbuild] {
            for folder in ["", "assets/"] {
                let keys: Vec<String> =
                    names.iter().map(|name| format!("{folder}{name}")).collect();
                let hashes = Fingerprints::among(keys.iter().map(String::as_str));
                for key in &keys {
                    assert!(hashes.has(key), "{key}");
                }
            }
            assert!(
                names.iter().any(|name| !Fingerprints::default().has(name)),
                "{names:?} should have a doubtful name"
            );
        }
    }

    #[test]
    fn words_and_numbers_are_none_in_a_bundler_s_folder_either() {
        let hashes = Fingerprints::among(["assets/index-Dv6VGLub.js"].into_iter());
        for key in [
            "assets/logo-original.png",
            "assets/logo-Original.png",
            "assets/logo-DarkMode.svg",
            "assets/vendor-DataGrid.js",
            "assets/case-iPhone15.png",
            "assets/trip-My-Photo.jpg",
            "assets/app-v2-Beta1.js",
            "assets/inter-v3-latin.woff2",
            "assets/banner-1024x768.png",
            "assets/report-20240115.pdf",
            "assets/CoJyNNAh.css",
            "assets/-CoJyNNAh.css",
            "assets/index-CoJyNNAh",
            "assets/Übung-éoJyNNAh.css",
            "images/index-CoJyNNAh.css",
            "assets/more/index-CoJyNNAh.css",
        ] {
            assert!(!hashes.has(key), "{key}");
        }
    }
}
