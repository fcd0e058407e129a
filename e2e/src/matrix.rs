//! The matrix in SUPPORT.md: the scenarios that held on each version of Crossplane.

use std::fs;

use anyhow::{Context, Result};
use jiff::{Timestamp, tz::TimeZone};
use xtask::generate::reference::{section, with_section};
use xtask::markdown::table;
use xtask::workspace;

/// The section with the matrix.
const SECTION: &str = "scenarios";

const HEADER: [&str; 3] = ["Crossplane", "scenarios", "date"];

/// Records that this many scenarios held today on a version of Crossplane.
///
/// # Errors
/// SUPPORT.md cannot be read or written, or lacks the section.
pub fn record(version: &str, held: usize) -> Result<()> {
    let path = workspace::root().join("SUPPORT.md");
    let page = fs::read_to_string(&path).context("reading SUPPORT.md")?;
    let date = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let row = [version.trim_start_matches('v').to_owned(), held.to_string(), date.to_string()];
    let matrix = with_row(section(&page, SECTION)?, row);
    fs::write(&path, with_section(&page, SECTION, &matrix)?).context("writing SUPPORT.md")
}

/// The matrix with a row in place of the one for the same minor version. The newest version is the
/// first.
fn with_row(matrix: &str, row: [String; 3]) -> String {
    let cells =
        |line: &str| line.trim_matches(['|', ' ']).split(" | ").map(str::to_owned).collect();
    let mut rows: Vec<Vec<String>> = matrix.lines().skip(2).map(cells).collect();
    rows.retain(|other| minor(&other[0]) != minor(&row[0]));
    rows.push(row.into());
    rows.sort_by_key(|row| std::cmp::Reverse(minor(&row[0])));
    table(&HEADER, rows)
}

/// Major and minor version, as numbers.
fn minor(version: &str) -> Vec<u32> {
    version.split('.').take(2).map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_replaces_the_one_of_its_minor_version() {
        let row = |version: &str, held: &str| [version, held, "2027-01-02"].map(str::to_owned);
        let one = with_row("", row("1.20.11", "40"));
        let two = with_row(&one, row("2.4.0", "60"));
        let three = with_row(&two, row("1.20.12", "41"));
        let expected = "| Crossplane | scenarios | date |\n|---|---|---|\n\
                        | 2.4.0 | 60 | 2027-01-02 |\n| 1.20.12 | 41 | 2027-01-02 |\n";
        assert_eq!(three, expected);
    }
}
