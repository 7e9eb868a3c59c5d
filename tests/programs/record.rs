//! What a GPU made of random programs, small enough to be kept: a hash of each text and of each output.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// How many programs a record holds.
pub(crate) const PROGRAMS: u64 = 2000;

/// A device's results.
pub(crate) struct Record {
    pub(crate) device: String,
    /// The forms that the programs were drawn from, so that new ones do not change them.
    pub(crate) forms: Vec<String>,
    /// Of each program, by seed: the hashes of its text and of its output.
    pub(crate) programs: Vec<String>,
}

impl Record {
    pub(crate) fn to_json(&self) -> Value {
        json!({ "device": self.device, "forms": self.forms, "programs": self.programs })
    }

    /// A panic where the text is no record, which it is as long as nobody edits it.
    pub(crate) fn from_json(text: &str) -> Record {
        let document: Value = serde_json::from_str(text).expect("JSON");
        let texts = |name: &str| -> Vec<String> {
            document[name].as_array().expect(name).iter().map(|text| text.as_str().expect(name).to_owned()).collect()
        };
        let device = document["device"].as_str().expect("a device").to_owned();
        Record { device, forms: texts("forms"), programs: texts("programs") }
    }
}

/// What a record holds of a program.
pub(crate) fn entry(text: &str, output: &[u8]) -> String {
    format!("{} {}", hash(text.as_bytes(), 4), hash(output, 8))
}

/// So many bytes of a SHA-256, as hexadecimal digits.
fn hash(bytes: &[u8], length: usize) -> String {
    Sha256::digest(bytes)[..length].iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}
