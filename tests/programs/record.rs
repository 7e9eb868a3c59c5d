//! What a GPU made of random programs, small enough to be kept: a hash of each text and of each output.

use sha2::{Digest, Sha256};

use super::catalog::Catalog;

/// How many programs a record holds: 2,000, and some for those that the assembler gets wrong.
pub(crate) const PROGRAMS: u64 = 2010;

/// Stands for an output that is another one than the software GPU's.
pub(crate) const DIFFERS: &str = "differs";

/// A device's results.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct Record {
    pub(crate) device: String,
    pub(crate) target: String,
    /// The forms that the programs were drawn from, so that new ones do not change them.
    pub(crate) forms: Vec<String>,
    /// What of their spellings the device's assembler does not take.
    pub(crate) refused: Vec<String>,
    /// Of each program, by seed: the hashes of its text and of its output, or [`DIFFERS`] where that is not the software GPU's.
    pub(crate) programs: Vec<String>,
}

impl Record {
    /// The one that is committed.
    pub(crate) fn committed() -> Record {
        serde_json::from_str(include_str!("../data/random-h100.json")).expect("a record that nobody edited")
    }

    /// What its programs are drawn from.
    pub(crate) fn catalog(&self) -> Result<Catalog, String> {
        Catalog::recorded(&self.target, &self.forms, &self.refused)
    }
}

/// What a record holds of a program.
pub(crate) fn entry(text: &str, output: Option<&[u8]>) -> String {
    let output = output.map_or_else(|| DIFFERS.to_owned(), |output| hash(output, 8));
    format!("{} {output}", hash(text.as_bytes(), 4))
}

/// So many bytes of a SHA-256, as hexadecimal digits.
fn hash(bytes: &[u8], length: usize) -> String {
    Sha256::digest(bytes)[..length].iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}
