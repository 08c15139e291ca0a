//! Lists in pages.
//!
//! A page starts after a key, not at an offset, so rows that appear meanwhile neither repeat nor hide
//! others. Cursors are opaque: they say which list they belong to, and another list refuses them.

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::domain::refusal::{Code, Refusal};
use crate::store::Page;

/// Most items of a page.
pub const LIMIT_MAX: u32 = 500;

/// Items of a page when the request does not say.
pub const LIMIT_DEFAULT: u32 = 100;

/// How many items a page may hold: 1..=[`LIMIT_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(pub u32);

impl Default for Limit {
    fn default() -> Self {
        Self(LIMIT_DEFAULT)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let limit = u32::deserialize(deserializer)?;
        if (1..=LIMIT_MAX).contains(&limit) {
            Ok(Self(limit))
        } else {
            Err(serde::de::Error::custom(format!(
                "a page holds 1 to {LIMIT_MAX} items; {limit} were asked for"
            )))
        }
    }
}

/// Items of a list and where the next ones are.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Listing<T> {
    /// The items, in the order of the list.
    pub items: Vec<T>,
    /// Pass it as `after` to get the following items; null when there are none.
    #[schema(required)]
    pub next: Option<String>,
}

/// What a cursor of `list` after `key` looks like from outside.
pub fn cursor(list: &str, key: &str) -> String {
    hex::encode(format!("1:{list}:{key}"))
}

/// The key inside a cursor of `list`.
///
/// # Errors
/// When the text is no cursor of this list.
pub fn key(list: &str, cursor: &str) -> Result<String, Refusal> {
    hex::decode(cursor)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .and_then(|text| text.strip_prefix(&format!("1:{list}:")).map(str::to_owned))
        .ok_or_else(|| {
            let detail =
                format!("is not a cursor of the list of {list}; use `next` of a page of it");
            Refusal::new(Code::InvalidRequest, format!("the cursor {detail}"))
                .at("/query/after", detail)
        })
}

/// What to ask the store for: one more row than the page holds, to learn whether there is a next one.
///
/// # Errors
/// When `after` is no cursor of this list.
pub fn window(list: &str, after: Option<&str>, limit: Limit) -> Result<Page, Refusal> {
    let after = after.map(|cursor| key(list, cursor)).transpose()?;
    Ok(Page { after, limit: limit.0 + 1 })
}

/// Cuts what the store gave for [`window`] to one page.
pub fn cut<T>(
    list: &str,
    mut rows: Vec<T>,
    limit: Limit,
    key: impl Fn(&T) -> String,
) -> Listing<T> {
    let more = rows.len() > limit.0 as usize;
    rows.truncate(limit.0 as usize);
    let next = if more { rows.last().map(|row| cursor(list, &key(row))) } else { None };
    Listing { items: rows, next }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_belongs_to_its_list() {
        let runs = cursor("runs", "RUN-20260905T193006Z-4fbeb4e5");
        assert_eq!(key("runs", &runs).unwrap(), "RUN-20260905T193006Z-4fbeb4e5");
        assert_eq!(key("leases", &runs).unwrap_err().errors[0].pointer, "/query/after");
        assert!(key("runs", "zz").is_err());
        assert!(key("runs", "").is_err());
        assert!(key("runs", "ff").is_err());
    }

    #[test]
    fn a_full_page_says_where_the_next_one_starts() {
        let list = |count: u32| cut("n", (0..count).collect(), Limit(3), ToString::to_string);
        assert_eq!(list(0), Listing { items: vec![], next: None });
        assert_eq!(list(3), Listing { items: vec![0, 1, 2], next: None });
        assert_eq!(list(4), Listing { items: vec![0, 1, 2], next: Some(cursor("n", "2")) });
    }
}
