//! Makes texts of other people or programs safe for a terminal.

/// Whether a terminal could interpret a character. Control characters and characters that change
/// the direction of text or end a line are harmful. A line feed alone is not harmful.
pub fn is_harmful(c: char) -> bool {
    match c {
        '\n' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        other => other.is_control(),
    }
}

/// A text without harmful characters. Line feeds remain.
pub fn harmless(text: &str) -> String {
    text.chars().filter(|c| !is_harmful(*c)).collect()
}

/// A name in one line, without harmful characters.
pub fn harmless_name(name: &str) -> String {
    harmless(name).replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_cannot_move_the_cursor() {
        assert_eq!(harmless("a\u{1b}[2Jb\r\nc\u{9b}1A"), "a[2Jb\nc1A");
        assert_eq!(harmless_name("a\u{1b}[2Jb\r\nc\u{9b}1A"), "a[2Jb c1A");
        assert_eq!(harmless("a\u{202e}b\u{2028}c\u{2067}\u{200f}d – …"), "abcd – …");
    }
}
