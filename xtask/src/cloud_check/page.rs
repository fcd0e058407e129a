//! The page with the results of the checks.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::Value;

use super::left::Search;

/// The page, from the report of Chainsaw and the searches in the clouds.
pub(super) fn results(report: &Value, left: &[Search]) -> String {
    let start = report["startTime"].as_str().unwrap_or_default();
    let mut page = format!("# Results of the checks in clouds\n\nStart: {start}\n\n");
    page.push_str("| check | result | minutes |\n|---|---|---|\n");
    for test in entries(&report["tests"]) {
        let failure = failure(test).map(|error| error.replace('\n', " ").replace('|', "\\|"));
        let result = failure.unwrap_or_else(|| "passed".to_owned());
        let name = test["name"].as_str().unwrap_or_default();
        _ = writeln!(page, "| {name} | {result} | {} |", minutes(test));
    }
    page.push_str("\n## Resources that stay\n\n| place | resources |\n|---|---|\n");
    for Search { place, found } in left {
        let found = match found {
            Ok(ids) if ids.is_empty() => "none".to_owned(),
            Ok(ids) => ids.join("<br>"),
            Err(error) => format!("not searched: {}", error.replace('\n', " ")),
        };
        _ = writeln!(page, "| {place} | {found} |");
    }
    page
}

fn entries(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// The first error of a test.
fn failure(test: &Value) -> Option<String> {
    let mut operations = entries(&test["steps"]).flat_map(|step| entries(&step["operations"]));
    operations.find_map(|operation| Some(operation["failure"]["error"].as_str()?.to_owned()))
}

fn minutes(test: &Value) -> i64 {
    let time = |key: &str| test[key].as_str().and_then(|time| time.parse::<Timestamp>().ok());
    let took = time("startTime").zip(time("endTime"));
    took.map_or(0, |(start, end)| (end.as_second() - start.as_second()).div_euclid(60))
}
