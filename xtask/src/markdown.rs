//! Markdown for generated pages.

/// A Markdown table. Cells may have any text.
pub fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: Vec<String>| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let head = line(header.iter().map(|title| (*title).to_owned()).collect());
    let rule = format!("|{}\n", "---|".repeat(header.len()));
    [head, rule].into_iter().chain(rows.into_iter().map(line)).collect()
}
