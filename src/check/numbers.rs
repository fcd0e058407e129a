//! Numbers that Crossplane carries exactly.

use serde_json::Value;

use crate::error::{Error, FieldError};

/// 2⁵³: Crossplane sends numbers to functions as doubles. From this number on, a double no longer
/// represents exactly one integer.
const INEXACT: f64 = 9_007_199_254_740_992.0;

/// Maximum number of reported numbers. Each becomes a result, and the size of an answer is limited.
const MAX_VIOLATIONS: usize = 50;

/// Rejects numbers of a spec, in any field, that Crossplane has changed or may have changed. These
/// are the numbers of 2⁵³ or more.
pub fn exact(spec: &Value) -> Result<(), Error> {
    let mut wrong = Vec::new();
    look("spec", spec, &mut wrong);
    if wrong.is_empty() { Ok(()) } else { Err(Error::InvalidSpec(wrong)) }
}

fn look(path: &str, value: &Value, wrong: &mut Vec<FieldError>) {
    if wrong.len() >= MAX_VIOLATIONS {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let plain =
                    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
                let path = if plain { format!("{path}.{name}") } else { format!("{path}[{name}]") };
                look(&path, value, wrong);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                look(&format!("{path}[{index}]"), item, wrong);
            }
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            if number.abs() >= INEXACT {
                let message = format!(
                    "found {number}; allowed: up to 9007199254740991 (2^53 - 1), because \
                     Crossplane may change a larger \
                     number. Put it in quotes"
                );
                wrong.push(FieldError { path: path.to_owned(), message });
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_that_doubles_cannot_tell_apart_are_rejected() {
        let spec = json!({"values": {
            "exact": [9_007_199_254_740_991_i64, -9_007_199_254_740_991_i64, 0.5, "987654321098765433"],
            "a.b": 9_007_199_254_740_993_i64,
            "list": [{"id": -987_654_321_098_765_433_i64}, 1e300],
        }});
        let Err(Error::InvalidSpec(wrong)) = exact(&spec) else {
            unreachable!("three numbers are too large")
        };
        let paths: Vec<&str> = wrong.iter().map(|field| field.path.as_str()).collect();
        assert_eq!(paths, ["spec.values[a.b]", "spec.values.list[0].id", "spec.values.list[1]"]);
        assert!(wrong[0].message.starts_with("found 9007199254740992; "), "{}", wrong[0].message);
    }

    #[test]
    fn many_large_numbers_are_named_up_to_a_bound() {
        let Err(Error::InvalidSpec(wrong)) = exact(&json!(vec![1e300; 60_000])) else {
            unreachable!("all numbers are too large")
        };
        assert_eq!(wrong.len(), MAX_VIOLATIONS);
    }
}
