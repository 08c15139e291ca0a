//! Identifiers, as the origin programme writes them: a prefix, an instant or a date with a slug, and
//! eight hex digits. The suffix of an imported id is not proof of randomness, so nothing relies on it.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A text that is not an id of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {article} id; one looks like {example}")]
pub struct IdError {
    text: String,
    article: &'static str,
    example: &'static str,
}

fn is_hex8(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn is_digits(text: &str, len: usize) -> bool {
    text.len() == len && text.bytes().all(|b| b.is_ascii_digit())
}

/// `YYYYMMDDTHHMMSSZ`.
fn is_instant(text: &str) -> bool {
    text.len() == 16
        && text.split_once('T').is_some_and(|(date, time)| {
            is_digits(date, 8) && time.strip_suffix('Z').is_some_and(|time| is_digits(time, 6))
        })
}

/// Lower-case words of letters and digits joined by single hyphens, 1..=64 characters.
fn is_slug(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.split('-').all(|word| {
            !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase())
        })
}

fn is_instant_id(body: &str) -> bool {
    body.split_once('-').is_some_and(|(instant, suffix)| is_instant(instant) && is_hex8(suffix))
}

fn is_titled_id(body: &str) -> bool {
    body.split_once('-').and_then(|(date, rest)| Some((date, rest.rsplit_once('-')?))).is_some_and(
        |(date, (slug, suffix))| is_digits(date, 8) && is_slug(slug) && is_hex8(suffix),
    )
}

/// What follows the prefix of an id of this form, as a regular expression.
fn pattern(form: &str) -> &'static str {
    if form == "titled_id" {
        "[0-9]{8}-[a-z0-9]+(-[a-z0-9]+)*-[0-9a-f]{8}"
    } else {
        "[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}"
    }
}

/// A slug made of a title: runs of other characters become one hyphen; at most 64 characters.
pub fn slug(title: &str) -> String {
    let mut slug = String::new();
    for c in title.chars().map(|c| c.to_ascii_lowercase()) {
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
        if slug.len() >= 48 {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { String::from("untitled") } else { slug.to_owned() }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal $check:ident $article:literal $example:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                match text.strip_prefix($prefix) {
                    Some(body) if $check(body) => Ok(Self(text.to_owned())),
                    _ => Err(IdError { text: text.to_owned(), article: $article, example: $example }),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                use utoipa::openapi::schema::{ObjectBuilder, Type};
                let body = stringify!($check).strip_prefix("is_").map_or("", pattern);
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .pattern(Some(format!("^{}{body}$", $prefix)))
                    .examples([serde_json::Value::from($example)])
                    .into()
            }
        }

        impl utoipa::ToSchema for $name {}
    )*};
}

ids! {
    /// A theory.
    TheoryId "TH-" is_titled_id "a theory" "TH-20260905-line-tuples-bcb25133";
    /// An experiment: one frozen protocol.
    ExperimentId "EX-" is_titled_id "an experiment" "EX-20260905-line-tuples-535b2620";
    /// A dataset.
    DatasetId "DS-" is_titled_id "a dataset" "DS-20260905-roots-0a1b2c3d";
    /// A run of an experiment.
    RunId "RUN-" is_instant_id "a run" "RUN-20260905T193006Z-4fbeb4e5";
    /// A result of a run.
    ResultId "RS-" is_instant_id "a result" "RS-20260905T215332Z-95d18a5a";
    /// A contribution.
    ContributionId "CT-" is_instant_id "a contribution" "CT-20260905T215332Z-95d18a5a";
    /// A seed lease.
    LeaseId "SL-" is_instant_id "a lease" "SL-20260905T191317Z-c25f58cd";
    /// A machine profile.
    MachineId "MACH-" is_instant_id "a machine" "MACH-20260905T193006Z-4fbeb4e5";
}

/// An id that carries the instant it was minted at.
pub trait InstantId: FromStr<Err = IdError> {
    /// Prefix with its hyphen.
    const PREFIX: &'static str;

    /// A new id from the clock's instant and four random bytes.
    ///
    /// # Errors
    /// Never for instants of the years 0..=9999.
    fn mint(now: Timestamp, random: [u8; 4]) -> Result<Self, IdError> {
        let instant = now.strftime("%Y%m%dT%H%M%SZ");
        format!("{}{instant}-{}", Self::PREFIX, hex::encode(random)).parse()
    }
}

/// An id that carries the date and the slug of a title.
pub trait TitledId: FromStr<Err = IdError> {
    /// Prefix with its hyphen.
    const PREFIX: &'static str;

    /// A new id from the clock's date, a title and four random bytes.
    ///
    /// # Errors
    /// Never for instants of the years 0..=9999.
    fn mint(now: Timestamp, title: &str, random: [u8; 4]) -> Result<Self, IdError> {
        let date = now.strftime("%Y%m%d");
        format!("{}{date}-{}-{}", Self::PREFIX, slug(title), hex::encode(random)).parse()
    }
}

macro_rules! minted {
    ($($kind:ident for $name:ident $prefix:literal;)*) => {$(
        impl $kind for $name {
            const PREFIX: &'static str = $prefix;
        }
    )*};
}

minted! {
    TitledId for TheoryId "TH-";
    TitledId for ExperimentId "EX-";
    TitledId for DatasetId "DS-";
    InstantId for RunId "RUN-";
    InstantId for ResultId "RS-";
    InstantId for ContributionId "CT-";
    InstantId for LeaseId "SL-";
    InstantId for MachineId "MACH-";
}
