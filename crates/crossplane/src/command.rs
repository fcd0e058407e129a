//! Commands of `paved` about one environment, in messages to users.

/// The object that a user applied: a claim, or a namespaced composite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// The kind as commands take it: `KIND`, or `KIND.GROUP` if several groups may have the kind.
    pub kind: &'a str,
    /// The namespace. `None` for a composite without a claim.
    pub namespace: Option<&'a str>,
    /// The name.
    pub name: &'a str,
}

impl Target<'_> {
    /// The command line, for example `paved extend gpudevworkspaceclaim/ada 4h -n team-vision`.
    /// `arguments` follow the name, and may be empty.
    pub fn command(&self, verb: &str, arguments: &str) -> String {
        let mut line = format!("paved {verb} {}/{}", self.kind, self.name);
        if !arguments.is_empty() {
            line = format!("{line} {arguments}");
        }
        match self.namespace {
            Some(namespace) => format!("{line} -n {namespace}"),
            None => line,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_names_kind_and_namespace() {
        let workspace =
            Target { kind: "gpudevworkspaceclaim", namespace: Some("team-vision"), name: "ada" };
        let command = workspace.command("extend", "4h");
        assert_eq!(command, "paved extend gpudevworkspaceclaim/ada 4h -n team-vision");
        let composite = Target { namespace: None, ..workspace };
        assert_eq!(composite.command("delete", ""), "paved delete gpudevworkspaceclaim/ada");
    }
}
