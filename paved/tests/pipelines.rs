//! The documented pipelines are YAML, their scripts are Bash, and their calls of `paved` use
//! existing flags.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::process::Command;

use regex_lite::Regex;
use serde_json::Value;

const PAGE: &str = include_str!("../../docs/how-to/ci-pipelines.md");

/// The page's code blocks in a language.
fn blocks(language: &str) -> Vec<&'static str> {
    let begin = format!("```{language}\n");
    PAGE.split(&begin).skip(1).map(|part| part.split("```").next().unwrap()).collect()
}

/// The scripts in jobs of GitHub (`run`) and GitLab (`script`).
fn scripts(job: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    match job {
        Value::Array(all) => all.iter().flat_map(scripts).collect(),
        Value::Object(fields) => {
            let of = |(key, value): (&String, &Value)| match (key.as_str(), value) {
                ("run", line) => vec![text(line)],
                ("script", lines) => lines.as_array().unwrap().iter().map(text).collect(),
                (_, inner) => scripts(inner),
            };
            fields.iter().flat_map(of).collect()
        }
        _ => Vec::new(),
    }
}

/// The words of each call of `paved`, with unexpanded variables.
fn calls(script: &str) -> Vec<Vec<String>> {
    let call = Regex::new(r"(?m)(?:^|\| |&& )(paved .*?)(?: +#.*| +>.*| \||$)").unwrap();
    let words = |line: &str| {
        line.split_whitespace().map(|word| word.trim_matches('"').to_owned()).collect()
    };
    call.captures_iter(script).map(|found| words(&found[1])).collect()
}

#[test]
fn documented_block_uses_existing_commands() {
    let mut scripts: Vec<String> = blocks("bash").into_iter().map(str::to_owned).collect();
    assert_eq!(scripts.len(), 4);
    let pipelines = blocks("yaml");
    assert_eq!(pipelines.len(), 2);
    for pipeline in pipelines {
        let found = self::scripts(&serde_saphyr::from_str(pipeline).unwrap());
        let calls: Vec<Vec<String>> = found.iter().flat_map(|script| calls(script)).collect();
        let mut commands: Vec<&str> = calls.iter().map(|call| call[1].as_str()).collect();
        commands.sort_unstable();
        assert_eq!(commands, ["apply", "publish", "validate"], "{calls:?}");
        scripts.extend(found);
    }
    for script in &scripts {
        let read = Command::new("bash").args(["-n", "-c", script]).output().unwrap();
        assert!(read.status.success() && read.stderr.is_empty(), "{script}: {read:?}");
        for call in calls(script) {
            let parsed = paved::command().try_get_matches_from(&call);
            assert!(parsed.is_ok(), "{}", parsed.unwrap_err());
        }
    }
    assert_eq!(scripts.iter().map(|script| calls(script).len()).sum::<usize>(), 13);
}
