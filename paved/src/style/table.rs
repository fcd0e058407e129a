//! Tables that can be continued later. On a terminal, each row is one line, and free texts are cut.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::{BOLD, Mark, aligned, harmless_name, width};

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    head: &'static str,
    /// Whether the column can be cut or omitted on a narrow terminal. Names cannot, because users
    /// type them.
    free: bool,
}

impl Column {
    pub(crate) const fn fixed(head: &'static str) -> Self {
        Self { head, free: false }
    }

    pub(crate) const fn free(head: &'static str) -> Self {
        Self { head, free: true }
    }
}

/// A row of a table, with at most one coloured cell.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) cells: Vec<String>,
    /// The coloured column and its mark.
    pub(crate) mark: Option<(usize, Mark)>,
}

/// A table, and the state of its output.
pub(crate) struct Table {
    columns: Vec<Column>,
    /// The width of each column, which grows with the printed cells.
    widths: Vec<usize>,
    begun: bool,
}

impl Table {
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        let widths = columns.iter().map(|column| width(column.head)).collect();
        Self { columns, widths, begun: false }
    }

    /// Prints rows. The first call prints the column heads. `room` is the terminal's width, or
    /// `None` without a terminal.
    pub(crate) fn print(
        &mut self,
        rows: &[Row],
        room: Option<usize>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        for row in rows {
            for (wide, cell) in self.widths.iter_mut().zip(&row.cells) {
                *wide = width(cell).max(*wide);
            }
        }
        let widths = room
            .map_or_else(|| self.widths.iter().copied().map(Some).collect(), |room| self.fit(room));
        if !self.begun {
            let shown = self.columns.iter().zip(&widths);
            let (heads, widths): (Vec<String>, Vec<usize>) =
                shown.filter_map(|(column, wide)| Some((column.head.to_owned(), (*wide)?))).unzip();
            let more = if heads.len() < self.columns.len() { "  …" } else { "" };
            writeln!(out, "{BOLD}{}{more}{BOLD:#}", aligned(&heads, &widths).trim_end())?;
            self.begun = true;
        }
        rows.iter().try_for_each(|row| writeln!(out, "{}", line(row, &widths)))
    }

    /// The width of each column for rows of at most `room` columns, or `None` for an omitted
    /// column. The widest free columns are cut first. If that is not enough, the last free columns
    /// are omitted.
    fn fit(&self, room: usize) -> Vec<Option<usize>> {
        let mut shown: Vec<Option<usize>> = self.widths.iter().copied().map(Some).collect();
        loop {
            // After the heads, a sign shows that columns are omitted.
            let sign = if shown.contains(&None) { 3 } else { 0 };
            let mut widths = shown.clone();
            let taken: usize = widths.iter().flatten().map(|wide| wide + 2).sum();
            // The last column has no gap after it.
            let excess = (taken + sign).saturating_sub(room + 2);
            let last = self.free().rfind(|index| shown[*index].is_some());
            match last {
                Some(last) if !self.cut(&mut widths, excess) => shown[last] = None,
                _ => return widths,
            }
        }
    }

    /// Takes `excess` characters from the widest free columns. Returns whether they had enough.
    fn cut(&self, widths: &mut [Option<usize>], mut excess: usize) -> bool {
        const LEAST: usize = 8;
        while excess > 0 {
            let spare = |index: usize| {
                let least = width(self.columns[index].head).max(LEAST);
                widths[index].unwrap_or(0).saturating_sub(least)
            };
            let widest =
                self.free().filter(|index| spare(*index) > 0).max_by_key(|index| widths[*index]);
            let Some(widest) = widest else { return false };
            // At most half at a time, so that several wide columns shrink evenly.
            let gives = spare(widest).min(excess).div_ceil(2);
            widths[widest] = widths[widest].map(|wide| wide - gives);
            excess -= gives;
        }
        true
    }

    fn free(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.columns.iter().enumerate().filter(|(_, column)| column.free).map(|(index, _)| index)
    }
}

/// A row, with its cells aligned to the columns.
fn line(row: &Row, widths: &[Option<usize>]) -> String {
    let shown: Vec<(usize, &str, usize)> = row
        .cells
        .iter()
        .zip(widths)
        .enumerate()
        .filter_map(|(index, (cell, wide))| Some((index, cell.as_str(), (*wide)?)))
        .collect();
    let last = shown.iter().rposition(|(_, cell, _)| !cell.is_empty()).unwrap_or(0);
    let mut line = String::new();
    for (place, (index, cell, wide)) in shown.into_iter().enumerate().take(last + 1) {
        let style =
            row.mark.filter(|(column, _)| *column == index).map(|(_, mark)| super::style_of(mark));
        let style = style.unwrap_or_default();
        let cell = harmless_name(cell);
        let cell = console::truncate_str(&cell, wide, "…");
        let gap = if place == last { 0 } else { wide + 2 - width(&cell) };
        _ = write!(line, "{style}{cell}{style:#}{:gap$}", "");
    }
    line
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const COLUMNS: [Column; 3] = [Column::fixed("NAME"), Column::fixed("PHASE"), Column::free("X")];

    fn row(cells: &[&str]) -> Row {
        Row {
            cells: cells.iter().map(|cell| (*cell).to_owned()).collect(),
            mark: Some((1, Mark::Bad)),
        }
    }

    fn print(table: &mut Table, rows: &[Row], room: Option<usize>) -> String {
        let mut out = Vec::new();
        table.print(rows, room, &mut out).unwrap();
        anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string()
    }

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(COLUMNS.to_vec());
        let first =
            print(&mut table, &[row(&["é", "Provisioning", ""]), row(&["grace", "", "z"])], None);
        assert_eq!(first, "NAME   PHASE         X\né      Provisioning\ngrace                z\n");
        let more = print(&mut table, &[row(&["a", "Ready", "b"])], None);
        assert_eq!(
            more, "a      Ready         b\n",
            "later rows are aligned with the first rows, and have no heads"
        );
    }

    #[test]
    fn free_text_gives_way_on_a_terminal_and_never_in_a_pipe() {
        let columns = [COLUMNS[0], Column::free("OWNER"), COLUMNS[1], Column::free("MESSAGE")];
        let rows =
            [row(&["a-name-to-be-typed", "ada@acme.example.org", "Failed", &"m".repeat(140)])];
        let at = |room| print(&mut Table::new(columns.to_vec()), &rows, room);
        assert!(at(None).contains(&"m".repeat(140)));
        assert_eq!(at(Some(300)), at(None));
        for room in [60, 80, 120] {
            let told = at(Some(room));
            assert!(told.lines().all(|line| width(line) <= room), "{room}: {told}");
            assert!(
                told.contains("a-name-to-be-typed")
                    && told.contains("Failed")
                    && told.contains("mm…"),
                "{told}"
            );
        }
        let narrow = at(Some(40));
        assert!(narrow.contains("a-name-to-be-typed") && !narrow.contains("MESSAGE"), "{narrow}");
        assert!(
            narrow.contains("ada@acme…") && narrow.lines().all(|line| width(line) <= 40),
            "{narrow}"
        );
        assert!(
            narrow.lines().next().unwrap().ends_with("PHASE  …"),
            "a sign shows the omitted columns: {narrow}"
        );
        let roomy = at(Some(45));
        assert!(
            roomy.contains("ada@acme.exam…"),
            "an omitted column leaves its width to the others: {roomy}"
        );
        let none = at(Some(20));
        assert!(
            none.contains("a-name-to-be-typed") && none.contains("Failed"),
            "names are whole: {none}"
        );
    }
}
