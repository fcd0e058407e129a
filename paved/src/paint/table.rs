//! Tables, which can go on. On a terminal a row is a line: free text gives way.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::{BOLD, Mark, aligned, width};

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    head: &'static str,
    /// Whether its texts can be cut, or left out, where there is no room: names cannot, people type them.
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

/// A row of a table; one cell may be coloured.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) cells: Vec<String>,
    /// The column that shows how it fares, and how.
    pub(crate) mark: Option<(usize, Mark)>,
}

/// A table, as far as it was printed.
pub(crate) struct Table {
    columns: Vec<Column>,
    /// How wide each column is; they grow with what is printed.
    widths: Vec<usize>,
    begun: bool,
}

impl Table {
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        let widths = columns.iter().map(|column| width(column.head)).collect();
        Self { columns, widths, begun: false }
    }

    /// Prints rows, and the heads above the first. `room` is the terminal's width, where it is one.
    pub(crate) fn print(&mut self, rows: &[Row], room: Option<usize>, out: &mut dyn Write) -> io::Result<()> {
        for row in rows {
            for (wide, cell) in self.widths.iter_mut().zip(&row.cells) {
                *wide = width(cell).max(*wide);
            }
        }
        let widths =
            room.map_or_else(|| self.widths.iter().copied().map(Some).collect(), |room| self.fit(room));
        if !self.begun {
            let shown = self.columns.iter().zip(&widths);
            let (heads, widths): (Vec<String>, Vec<usize>) =
                shown.filter_map(|(column, wide)| Some((column.head.to_owned(), (*wide)?))).unzip();
            writeln!(out, "{BOLD}{}{BOLD:#}", aligned(&heads, &widths).trim_end())?;
            self.begun = true;
        }
        rows.iter().try_for_each(|row| writeln!(out, "{}", line(row, &widths)))
    }

    /// What is left of each column so that a row takes no more than that: the widest free texts are cut first; where that is not
    /// enough, the last of them are left out.
    fn fit(&self, room: usize) -> Vec<Option<usize>> {
        const LEAST: usize = 8;
        let mut widths: Vec<Option<usize>> = self.widths.iter().copied().map(Some).collect();
        let least = |column: &Column| width(column.head).max(LEAST);
        loop {
            let taken: usize = widths.iter().flatten().map(|wide| wide + 2).sum::<usize>().saturating_sub(2);
            let Some(excess) = taken.checked_sub(room).filter(|excess| *excess > 0) else { return widths };
            let free = || self.columns.iter().enumerate().filter(|(_, column)| column.free);
            let room_in =
                |index: usize| widths[index].unwrap_or(0).saturating_sub(least(&self.columns[index]));
            let widest = free().map(|(index, _)| index).filter(|index| room_in(*index) > 0);
            if let Some(widest) = widest.max_by_key(|index| widths[*index]) {
                let gives = room_in(widest).min(excess);
                // A step at a time, so that several that are wide give way alike.
                let step = gives.div_ceil(2);
                widths[widest] = widths[widest].map(|wide| wide - step);
            } else if let Some((last, _)) = free().rfind(|(index, _)| widths[*index].is_some()) {
                widths[last] = None;
            } else {
                return widths;
            }
        }
    }
}

/// A row, its cells below those of the others.
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
        let style = row.mark.filter(|(column, _)| *column == index).map(|(_, mark)| mark.style());
        let style = style.unwrap_or_default();
        let cell = console::truncate_str(cell, wide, "…");
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
        Row { cells: cells.iter().map(|cell| (*cell).to_owned()).collect(), mark: Some((1, Mark::Bad)) }
    }

    fn print(table: &mut Table, rows: &[Row], room: Option<usize>) -> String {
        let mut out = Vec::new();
        table.print(rows, room, &mut out).unwrap();
        anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string()
    }

    #[test]
    fn columns_stand_below_each_other() {
        let mut table = Table::new(COLUMNS.to_vec());
        let first = print(&mut table, &[row(&["é", "Provisioning", ""]), row(&["grace", "", "z"])], None);
        assert_eq!(first, "NAME   PHASE         X\né      Provisioning\ngrace                z\n");
        let more = print(&mut table, &[row(&["a", "Ready", "b"])], None);
        assert_eq!(more, "a      Ready         b\n", "later rows stand below the first, without heads");
    }

    #[test]
    fn free_text_gives_way_on_a_terminal_and_never_in_a_pipe() {
        let columns = [COLUMNS[0], Column::free("OWNER"), COLUMNS[1], Column::free("MESSAGE")];
        let rows = [row(&["a-name-to-be-typed", "ada@acme.example.org", "Failed", &"m".repeat(140)])];
        let at = |room| print(&mut Table::new(columns.to_vec()), &rows, room);
        assert!(at(None).contains(&"m".repeat(140)));
        assert_eq!(at(Some(300)), at(None));
        for room in [60, 80, 120] {
            let told = at(Some(room));
            assert!(told.lines().all(|line| width(line) <= room), "{room}: {told}");
            assert!(
                told.contains("a-name-to-be-typed") && told.contains("Failed") && told.contains("mm…"),
                "{told}"
            );
        }
        let narrow = at(Some(40));
        assert!(narrow.contains("a-name-to-be-typed") && !narrow.contains("MESSAGE"), "{narrow}");
        assert!(narrow.contains("ada@acm…") && narrow.lines().all(|line| width(line) <= 40), "{narrow}");
        let none = at(Some(20));
        assert!(none.contains("a-name-to-be-typed") && none.contains("Failed"), "names are whole: {none}");
    }
}
