//! Keeps a GPU's results of random programs in little room: a hash of each text and of each output.

use sha2::{Digest, Sha256};

use super::catalog::Catalog;
use super::program::Program;

/// How many programs a record holds: 2,000, and some for those that the assembler gets wrong.
pub(crate) const PROGRAMS: u64 = 2010;

/// A program whose output is another one on the recorded device, because its assembler's code is
/// not the PTX's.
pub(crate) struct Miscompiled {
    pub(crate) seed: u64,
    /// The beginning of an instruction of it: without those that begin so, the program gives the
    /// same there.
    pub(crate) cause: &'static str,
    pub(crate) why: &'static str,
}

/// All of them. Whatever else differs is unexplained.
pub(crate) const MISCOMPILED: [Miscompiled; 1] = [Miscompiled {
    seed: 966,
    cause: "abs.s16",
    why: "the assembler compares the absolute value of -2^15 in 16 bits as 2^15, though the register holds -2^15 (12.9 shows \
          the same when it optimises, 13.5 does not)",
}];

impl Miscompiled {
    /// Returns the known cause of a difference on a device: the program is one of these, and
    /// without its cause the device `agrees` with the software GPU, so that nothing else differs.
    /// A device need not differ, because another version of the assembler may be right.
    pub(crate) fn explains(program: &Program, agrees: impl Fn(&Program) -> bool) -> Option<&'static Miscompiled> {
        let known = MISCOMPILED.iter().find(|known| known.seed == program.seed)?;
        agrees(&program.clone().without(known.cause)).then_some(known)
    }
}

/// Stands for an output that is another one than the software GPU's.
pub(crate) const DIFFERS: &str = "differs";

/// A device's results.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct Record {
    pub(crate) device: String,
    pub(crate) target: String,
    /// The forms that the programs were drawn from, so that new ones do not change them.
    pub(crate) forms: Vec<String>,
    /// The spellings that the device's assembler does not take.
    pub(crate) refused: Vec<String>,
    /// For each program, by seed: the hashes of its text and of its output, or [`DIFFERS`] if that
    /// is not the software GPU's.
    pub(crate) programs: Vec<String>,
}

impl Record {
    /// The one that is committed.
    pub(crate) fn committed() -> Record {
        serde_json::from_str(include_str!("../data/random-h100.json")).expect("a record that was not edited")
    }

    /// Returns the catalog that its programs are drawn from.
    pub(crate) fn catalog(&self) -> Result<Catalog, String> {
        Catalog::recorded(&self.target, &self.forms, &self.refused)
    }
}

/// Returns the record's entry for a program.
pub(crate) fn entry(text: &str, output: Option<&[u8]>) -> String {
    let output = output.map_or_else(|| DIFFERS.to_owned(), |output| hash(output, 8));
    format!("{} {output}", hash(text.as_bytes(), 4))
}

/// So many bytes of a SHA-256, as hexadecimal digits.
fn hash(bytes: &[u8], length: usize) -> String {
    Sha256::digest(bytes)[..length].iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}
