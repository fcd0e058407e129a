//! Our block in a configuration file of OpenSSH. The other lines of the file stay as they are.
//!
//! The block has a section for each context and namespace, and a last section for all other hosts.
//! It begins the file, because OpenSSH takes the first value of each option.

/// The first and the last line of the block, without their ends.
const BEGIN: &str = "# >>> paved ssh config >>>";
const END: &str = "# <<< paved ssh config <<<";

/// The begin of a section's first line.
const SECTION: &str = "# Workspaces of ";

/// A file, taken apart.
#[derive(Debug, PartialEq)]
pub(super) struct Parts<'t> {
    before: &'t str,
    /// The sections of the block: the first line and the others.
    sections: Vec<(&'t str, &'t str)>,
    after: &'t str,
}

impl<'t> Parts<'t> {
    /// Finds the block of a file.
    ///
    /// # Errors
    /// A mark of the block is missing, or there are several blocks.
    pub(super) fn of(text: &'t str) -> Result<Self, String> {
        let begins = lines_equal_to(text, BEGIN);
        let ends = lines_equal_to(text, END);
        let (begin, end) = match (&begins[..], &ends[..]) {
            ([], []) => return Ok(Self { before: "", sections: Vec::new(), after: text }),
            ([begin], [end]) if begin < end => (*begin, *end),
            _ => {
                return Err(format!(
                    "found {} lines {BEGIN:?} and {} lines {END:?}; allowed: one of each, in this \
                     order. Remove these lines and the entries between them, and run the command \
                     again. Nothing was changed",
                    begins.len(),
                    ends.len()
                ));
            }
        };
        let inner = &text[after_line(text, begin)..end];
        Ok(Self {
            before: &text[..begin],
            sections: sections(inner),
            after: &text[after_line(text, end)..],
        })
    }

    /// The file with these entries in the first section. Sections of other titles stay. `rest` are
    /// the lines for all other hosts.
    pub(super) fn with(&self, title: &str, entries: &str, rest: &str) -> String {
        let title = format!("{SECTION}{title}\n");
        let own = (!entries.is_empty()).then_some((title.as_str(), entries));
        let others = self.sections.iter().copied().filter(|(line, _)| *line != title);
        let sections: String =
            own.into_iter().chain(others).flat_map(|(line, entries)| [line, entries]).collect();
        let Self { before, after, .. } = self;
        let note = "# `paved ssh config` writes these lines. Your own lines belong below them.";
        // The last line ends our section, so that the following options count for every host.
        format!("{before}{BEGIN}\n{note}\n{sections}{OTHERS}\n{rest}Host *\n{END}\n{after}")
    }

    /// The file without the block. `None` if it has none.
    pub(super) fn without(&self, text: &str) -> Option<String> {
        (self.after.len() + self.before.len() < text.len())
            .then(|| format!("{}{}", self.before, self.after))
    }
}

/// The first line of the last section.
const OTHERS: &str = "# All workspaces";

/// The positions of the lines with this text. An editor may have changed the ends of lines.
fn lines_equal_to(text: &str, wanted: &str) -> Vec<usize> {
    let mut at = 0;
    let lines = text.split_inclusive('\n').map(|line| {
        let begin = at;
        at += line.len();
        (begin, line)
    });
    lines.filter(|(_, line)| line.trim() == wanted).map(|(begin, _)| begin).collect()
}

/// The position after the line at this position.
fn after_line(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |length| at + length + 1)
}

/// The sections for contexts and namespaces.
fn sections(inner: &str) -> Vec<(&str, &str)> {
    let others = lines_equal_to(inner, OTHERS).first().copied().unwrap_or(inner.len());
    let inner = &inner[..others];
    let mut begins: Vec<usize> = Vec::new();
    let mut at = 0;
    for line in inner.split_inclusive('\n') {
        if line.starts_with(SECTION) {
            begins.push(at);
        }
        at += line.len();
    }
    let ends = begins.iter().skip(1).copied().chain([inner.len()]);
    begins
        .iter()
        .zip(ends)
        .map(|(begin, end)| inner[*begin..end].split_at(after_line(inner, *begin) - begin))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const THEIRS: &str = "User me\r\nHost *\n  ControlPath ~/%C\n\nHost x";

    fn with(text: &str, title: &str, entries: &str) -> String {
        Parts::of(text).unwrap().with(title, entries, "Host *.paved\n")
    }

    #[test]
    fn lines_of_the_user_stay() {
        let once = with(THEIRS, "a", "Host ada.paved\n");
        assert!(once.starts_with(BEGIN) && once.ends_with(THEIRS), "{once}");
        assert_eq!(with(&once, "a", "Host ada.paved\n"), once);
        assert_eq!(Parts::of(&once).unwrap().without(&once).as_deref(), Some(THEIRS));
        assert_eq!(Parts::of(THEIRS).unwrap().without(THEIRS), None);
        // A user has moved the block.
        let moved = format!("Host y\n  User z\n{once}");
        let again = with(&moved, "a", "Host bob.paved\n");
        assert!(again.starts_with("Host y\n  User z\n# >>> ") && again.ends_with(THEIRS));
        assert!(again.contains("Host bob.paved") && !again.contains("ada"), "{again}");
    }

    #[test]
    fn sections_of_other_contexts_stay() {
        let a = with("", "a", "Host ada.paved\n");
        let both = with(&a, "b", "Host bob.paved\n");
        let order = |text: &str| (text.find("ada.paved").unwrap(), text.find("bob.paved").unwrap());
        let (ada, bob) = order(&both);
        assert!(bob < ada, "{both}");
        let (ada, bob) = order(&with(&both, "a", "Host ada.paved\n"));
        assert!(ada < bob);
        let none = with(&both, "b", "");
        assert_eq!(none, a);
        assert_eq!(both.matches("Host *.paved\n").count(), 1, "{both}");
    }

    #[test]
    fn damaged_block_is_an_error() {
        let block = with("", "a", "");
        for text in [
            BEGIN.to_owned(),
            END.to_owned(),
            format!("{END}\n{BEGIN}\n"),
            format!("{block}{block}"),
            format!("{block}{END}\n"),
        ] {
            let told = Parts::of(&text).unwrap_err();
            assert!(told.contains("Nothing was changed"), "{told}");
        }
    }
}
