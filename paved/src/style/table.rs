//! Tables that can be continued later. On a terminal, each row is one line, and the last columns are
//! omitted if there is no room.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::{BOLD, DIM, Mark, aligned, harmless_name, width};

/// The sign of omitted columns, after the heads.
const MORE: &str = "  …";

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    head: &'static str,
    /// Whether the column can be omitted on a narrow terminal. Names cannot, because users type
    /// them.
    free: bool,
    /// Whether the column is omitted on a terminal, where its text stands below the row.
    is_note: bool,
}

impl Column {
    pub(crate) const fn fixed(head: &'static str) -> Self {
        Self { head, free: false, is_note: false }
    }

    pub(crate) const fn free(head: &'static str) -> Self {
        Self { head, free: true, is_note: false }
    }

    pub(crate) const fn note(head: &'static str) -> Self {
        Self { head, free: true, is_note: true }
    }
}

/// A row of a table, with at most one coloured cell.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) cells: Vec<String>,
    /// The coloured column and its mark.
    pub(crate) mark: Option<(usize, Mark)>,
    /// A text below the row.
    pub(crate) note: String,
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
        let shown_columns = room
            .map_or_else(|| self.widths.iter().copied().map(Some).collect(), |room| self.fit(room));
        if !self.begun {
            let shown = self.columns.iter().zip(&shown_columns);
            let (heads, widths): (Vec<String>, Vec<usize>) =
                shown.filter_map(|(column, wide)| Some((column.head.to_owned(), (*wide)?))).unzip();
            let heads = aligned(&heads, &widths);
            let heads = heads.trim_end();
            let is_whole = self.is_whole(&shown_columns);
            let fits = room.is_none_or(|room| width(heads) + width(MORE) <= room);
            let more = if !is_whole && fits { MORE } else { "" };
            writeln!(out, "{BOLD}{heads}{more}{BOLD:#}")?;
            self.begun = true;
        }
        for row in rows {
            writeln!(out, "{}", line(row, &shown_columns))?;
            if !row.note.is_empty() {
                writeln!(out, "  {DIM}{}{DIM:#}", harmless_name(&row.note))?;
            }
        }
        Ok(())
    }

    /// Whether all columns are shown, but for those with their text below the rows.
    fn is_whole(&self, widths: &[Option<usize>]) -> bool {
        self.columns.iter().zip(widths).all(|(column, wide)| column.is_note || wide.is_some())
    }

    /// The width of each column for rows of at most `room` columns, or `None` for an omitted
    /// column. The last free columns are omitted first. No cell is cut, because users copy cells.
    fn fit(&self, room: usize) -> Vec<Option<usize>> {
        let columns = self.columns.iter().zip(&self.widths);
        let mut shown: Vec<Option<usize>> =
            columns.map(|(column, wide)| (!column.is_note).then_some(*wide)).collect();
        loop {
            // After the heads, a sign shows that columns are omitted.
            let sign = if self.is_whole(&shown) { 0 } else { width(MORE) };
            let taken: usize = shown.iter().flatten().map(|wide| wide + 2).sum();
            let last = self.free().rfind(|index| shown[*index].is_some());
            match last {
                // The last column has no gap after it.
                Some(last) if taken + sign > room + 2 => shown[last] = None,
                _ => return shown,
            }
        }
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
            note: String::new(),
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
    fn last_columns_are_omitted_on_a_narrow_terminal() {
        let columns = [COLUMNS[0], Column::free("OWNER"), COLUMNS[1], Column::free("ENDPOINT")];
        let rows =
            [row(&["a-name-to-be-typed", "ada@acme.example.org", "Failed", &"m".repeat(40)])];
        let at = |room| print(&mut Table::new(columns.to_vec()), &rows, room);
        assert!(at(None).contains(&"m".repeat(40)));
        assert_eq!(at(Some(300)), at(None));
        let narrow = at(Some(80));
        assert!(narrow.contains("ada@acme.example.org") && !narrow.contains("mm"), "{narrow}");
        let head = narrow.lines().next().unwrap_or_default();
        assert!(head.ends_with("PHASE  …"), "a sign shows the omitted columns: {narrow}");
        let none = at(Some(30));
        assert!(none.contains("a-name-to-be-typed") && none.contains("Failed"), "{none}");
        assert!(!none.contains("ada@"), "{none}");
        let tight = at(Some(25));
        assert_eq!(tight.lines().count(), 2, "the sign takes no line of its own: {tight}");
        assert!(at(Some(20)).contains("a-name-to-be-typed"), "names are whole");
    }

    #[test]
    fn reason_stands_below_its_row() {
        let columns = [COLUMNS[0], Column::note("REASON")];
        let failed = Row {
            cells: vec!["ada".to_owned(), String::new()],
            mark: None,
            note: "instance: quota exceeded".to_owned(),
        };
        let told = print(&mut Table::new(columns.to_vec()), &[failed], Some(80));
        assert_eq!(told, "NAME\nada\n  instance: quota exceeded\n");
    }
}
