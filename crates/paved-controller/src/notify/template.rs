//! Templates that turn an event into the body that a chat expects.

use std::sync::Arc;

use minijinja::Environment;
use minijinja::value::Serde;

use super::event::Event;

/// The text of a Slack message. Source: "Sending messages using incoming webhooks" of Slack.
const SLACK: &str = r#"{"text": {{ data.message | tojson }}}"#;

/// An adaptive card. Source: "Create incoming webhooks with Workflows" of Microsoft Teams.
const TEAMS: &str = r#"{"type": "message", "attachments": [{
"contentType": "application/vnd.microsoft.card.adaptive",
"content": {"$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
"type": "AdaptiveCard", "version": "1.4",
"body": [{"type": "TextBlock", "wrap": true, "text": {{ data.message | tojson }}}]}}]}"#;

/// A template of a JSON body.
#[derive(Clone, Debug)]
pub struct Template {
    text: Arc<str>,
}

impl Template {
    /// The built-in template with this name: `slack` or `teams`.
    pub fn built_in(name: &str) -> Option<Self> {
        match name {
            "slack" => Some(Self { text: SLACK.into() }),
            "teams" => Some(Self { text: TEAMS.into() }),
            _ => None,
        }
    }

    /// Reads a template.
    ///
    /// # Errors
    /// The reason why it does not make JSON of an event.
    pub fn parse(text: &str) -> Result<Self, String> {
        let template = Self { text: text.into() };
        let body = template.render(&Event::sample())?;
        serde_json::from_str::<serde_json::Value>(&body)
            .map_err(|error| format!("the result is not JSON: {error}"))?;
        Ok(template)
    }

    /// The body for an event.
    pub(super) fn render(&self, event: &Event) -> Result<String, String> {
        let rendered = Environment::new().render_str(&self.text, Serde(event));
        rendered.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::Value as Json;

    use super::*;

    #[test]
    fn built_in_templates_make_json_of_any_text() {
        let mut event = Event::sample();
        let text = "a \"quoted\" text\nwith {{ braces }} and \\";
        event.data["message"] = text.into();
        for (name, path) in [("slack", "/text"), ("teams", "/attachments/0/content/body/0/text")] {
            let body = Template::built_in(name).unwrap().render(&event).unwrap();
            let body: Json = serde_json::from_str(&body).unwrap();
            assert_eq!(body.pointer(path).unwrap(), text, "{name}");
        }
    }

    #[test]
    fn template_that_makes_no_json_is_rejected() {
        assert!(Template::parse("{\"text\": {{ data.message }}}").is_err());
        assert!(Template::parse("{{ data.message").is_err());
        assert!(Template::parse("{\"text\": {{ subject | tojson }}}").is_ok());
        assert!(Template::built_in("irc").is_none());
    }
}
