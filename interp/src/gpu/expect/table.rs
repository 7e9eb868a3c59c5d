//! A table of the expected and the found figures.

use std::fmt;

/// An expectation beside what was found.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Verdict {
    /// The expectation as it was written.
    pub expectation: String,
    /// The figure found.
    pub found: String,
    /// The figure wanted, behind its comparison.
    pub wanted: String,
    /// The figure found over the ideal: 1.0 where nothing is wasted. `None` for counters without an
    /// ideal, and where the ideal is 0.
    pub of_ideal: Option<f64>,
    /// True if the expectation holds.
    pub held: bool,
}

/// Expectations beside what was found. `Display` makes a table with a line for each.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(transparent))]
pub struct Verdicts {
    /// In the order of the expectations.
    pub rows: Vec<Verdict>,
}

impl Verdict {
    /// Returns whether an expectation of the ideal met no access, so that any kernel would hold it.
    fn is_of_nothing(&self) -> bool {
        self.of_ideal.is_none() && self.found == "0" && self.expectation.contains("ideal")
    }

    fn cells(&self) -> [String; 5] {
        let Self { expectation, found, wanted, of_ideal, held } = self;
        let held = if *held { "held" } else { "FELL SHORT" };
        let of_ideal = match of_ideal {
            Some(ratio) => format!("{ratio:.2}x"),
            None if self.is_of_nothing() => "nothing was counted".into(),
            None => "-".into(),
        };
        [held.into(), expectation.clone(), found.clone(), wanted.clone(), of_ideal]
    }
}

impl Verdicts {
    /// Returns whether every expectation holds.
    pub fn all_held(&self) -> bool {
        self.rows.iter().all(|verdict| verdict.held)
    }

    /// Returns the cells of the table that `Display` makes, for those who fit it into a width: a
    /// row of headings, and then a row for each expectation.
    pub fn cells(&self) -> Vec<Vec<String>> {
        let has_ideals = |verdict: &Verdict| verdict.of_ideal.is_some() || verdict.is_of_nothing();
        let columns = if self.rows.iter().any(has_ideals) { 5 } else { 4 };
        let header = ["", "expectation", "found", "wanted", "of ideal"].map(str::to_owned);
        let rows = std::iter::once(header).chain(self.rows.iter().map(Verdict::cells));
        rows.map(|cells| cells.into_iter().take(columns).collect()).collect()
    }
}

impl fmt::Display for Verdicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.cells();
        let width = |column: usize| rows.iter().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
        for cells in &rows {
            let line: Vec<String> = cells.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
            writeln!(f, "{}", line.join("  ").trim_end())?;
        }
        Ok(())
    }
}
