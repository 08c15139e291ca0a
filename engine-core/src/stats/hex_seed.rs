//! Seeds in JSON are strings like `0xb0071eaf`: a reader without 64-bit integers keeps every bit.

use serde::{Deserialize, Deserializer, Serializer, de};

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
pub(crate) fn serialize<S: Serializer>(seed: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{seed:#010x}"))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.strip_prefix("0x")
        .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
        .ok_or_else(|| de::Error::custom(format_args!("`{text}` is not a seed like 0xb0071eaf")))
}
