//! The condition `OverBudget`, from the annotation that the controller writes.

use function_paved_road::status::{BUDGET, OVER_BUDGET};
use serde_json::json;

use super::support::simulated;
use super::{Environment, condition};

#[test]
fn namespace_over_its_budget_gets_a_condition_and_one_event() {
    for case in simulated::all() {
        let name = case.name();
        let mut environment = Environment::ready(case, json!({}));
        assert_eq!(condition(&environment.call(), OVER_BUDGET), None, "{name}");
        for (value, status, events) in [
            ("39.000/40.000", None, 0),
            ("much", None, 0),
            ("41.000/40.000", Some(2), 1),
            ("42.000/40.000", Some(2), 0),
            ("40.000/40.000", Some(3), 0),
            ("", Some(3), 0),
        ] {
            let composite = environment.world.composite_mut();
            composite["metadata"]["annotations"][BUDGET] = json!(value);
            let response = environment.call();
            let found = condition(&response, OVER_BUDGET).map(|(status, ..)| status);
            assert_eq!(found, status, "{name}: {value}");
            let is_event = |reason: Option<&str>| reason == Some(OVER_BUDGET);
            let told = response.results.iter().filter(|one| is_event(one.reason.as_deref()));
            assert_eq!(told.count(), events, "{name}: {value}");
            environment.world.apply(&response).unwrap();
        }
    }
}
