//! Between Rust values and columns: instants as microseconds, whole numbers below 2^63, enums as their
//! kebab-case words, documents as JSON text.

use std::str::FromStr;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sqlx::sqlite::SqliteRow;
use sqlx::{ColumnIndex as _, Decode, Row as _, Sqlite, Type};

use super::faults::unreadable;
use crate::domain::refusal::{Code, Refusal};
use crate::domain::seed_range::Seed;

pub(super) fn micros(at: Timestamp) -> i64 {
    at.as_microsecond()
}

/// A whole number that SQLite can hold.
pub(super) fn whole(name: &str, value: u64) -> Result<i64, Refusal> {
    i64::try_from(value).map_err(|_| {
        Refusal::new(Code::InvalidRequest, format!("{name} is {value}; it must be below 2^63"))
    })
}

/// The kebab-case word of an enum.
pub(super) fn word(value: &impl Serialize) -> Result<String, Refusal> {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => Ok(word),
        other => Err(unreadable("word", &format!("{other:?}"))),
    }
}

/// A document as JSON text.
pub(super) fn json(value: &impl Serialize) -> Result<String, Refusal> {
    serde_json::to_string(value).map_err(|error| unreadable("document", &error))
}

/// A row with readable faults.
pub(super) struct Columns<'r>(pub(super) &'r SqliteRow);

impl<'r> Columns<'r> {
    pub(super) fn get<T>(&self, name: &'static str) -> Result<T, Refusal>
    where
        T: Decode<'r, Sqlite> + Type<Sqlite>,
    {
        debug_assert!(name.index(self.0).is_ok(), "no column {name}");
        self.0.try_get(name).map_err(|error| unreadable(name, &error))
    }

    pub(super) fn parsed<T>(&self, name: &'static str) -> Result<T, Refusal>
    where
        T: FromStr,
        T::Err: std::fmt::Display,
    {
        self.get::<&str>(name)?.parse().map_err(|error: T::Err| unreadable(name, &error))
    }

    pub(super) fn parsed_option<T>(&self, name: &'static str) -> Result<Option<T>, Refusal>
    where
        T: FromStr,
        T::Err: std::fmt::Display,
    {
        self.get::<Option<&str>>(name)?
            .map(|text| text.parse().map_err(|error: T::Err| unreadable(name, &error)))
            .transpose()
    }

    pub(super) fn word<T: DeserializeOwned>(&self, name: &'static str) -> Result<T, Refusal> {
        serde_json::from_value(Value::String(self.get(name)?))
            .map_err(|error| unreadable(name, &error))
    }

    pub(super) fn json<T: DeserializeOwned>(&self, name: &'static str) -> Result<T, Refusal> {
        serde_json::from_str(self.get(name)?).map_err(|error| unreadable(name, &error))
    }

    pub(super) fn json_option<T: DeserializeOwned>(
        &self,
        name: &'static str,
    ) -> Result<Option<T>, Refusal> {
        self.get::<Option<&str>>(name)?
            .map(|text| serde_json::from_str(text).map_err(|error| unreadable(name, &error)))
            .transpose()
    }

    pub(super) fn time(&self, name: &'static str) -> Result<Timestamp, Refusal> {
        Timestamp::from_microsecond(self.get(name)?).map_err(|error| unreadable(name, &error))
    }

    pub(super) fn time_option(&self, name: &'static str) -> Result<Option<Timestamp>, Refusal> {
        self.get::<Option<i64>>(name)?
            .map(|at| Timestamp::from_microsecond(at).map_err(|error| unreadable(name, &error)))
            .transpose()
    }

    /// A whole number of any unsigned size.
    pub(super) fn number<T: TryFrom<i64>>(&self, name: &'static str) -> Result<T, Refusal> {
        let value: i64 = self.get(name)?;
        T::try_from(value).map_err(|_| unreadable(name, &value))
    }

    pub(super) fn number_option<T: TryFrom<i64>>(
        &self,
        name: &'static str,
    ) -> Result<Option<T>, Refusal> {
        self.get::<Option<i64>>(name)?
            .map(|value| T::try_from(value).map_err(|_| unreadable(name, &value)))
            .transpose()
    }

    pub(super) fn seed(&self, name: &'static str) -> Result<Seed, Refusal> {
        Ok(Seed(self.number(name)?))
    }
}
