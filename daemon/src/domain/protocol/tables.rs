//! Tables that exist before training, and edits of frozen ones.

use std::collections::BTreeSet;

use super::fields::{Faults, Fields, Quoted, did_you_mean, named_list};
use super::values::{sha256, text, word};
use super::{CANDIDATE, Edit, EditRule, FAIR, PriorTable};

/// Tables that exist before training, and edits.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) prior: Vec<Option<PriorTable>>,
    pub(super) edits: Vec<Option<Edit>>,
    /// Names of the prior tables, also of those with a fault.
    pub(super) prior_names: Vec<String>,
    /// Names of the edits, also of those with a fault.
    pub(super) edit_names: Vec<String>,
}

/// Reads `[[tables]]` and `[[edit]]`. Whether an edit's source exists is checked by `training`,
/// which knows whether there is a candidate.
pub(super) fn tables_and_edits(fields: &mut Fields<'_>, faults: &mut Faults) -> Tables {
    let mut tables = Tables::default();
    let mut taken = BTreeSet::new();
    let words = [CANDIDATE, FAIR];
    if let Some((value, place)) = fields.get("tables") {
        (tables.prior, tables.prior_names) = named_list(
            value,
            &place,
            "tables",
            &words,
            &mut taken,
            faults,
            |fields, name, faults| {
                let sha256 = fields.required("sha256", "digest of the plain file", faults, sha256);
                Some(PriorTable { name: name?.to_owned(), sha256: sha256? })
            },
        );
    }
    let spelling = fields.spelled("edit", "edits", faults);
    if let Some((value, place)) = fields.get(spelling) {
        (tables.edits, tables.edit_names) = named_list(
            value,
            &place,
            "edits",
            &words,
            &mut taken,
            faults,
            |fields, name, faults| {
                let of = fields.required("of", "the table to edit", faults, text);
                let rules = &[("zero", EditRule::Zero), ("class-mean", EditRule::ClassMean)];
                let rule =
                    fields.required("set_untouched_to", "zero or class-mean", faults, word(rules));
                Some(Edit { name: name?.to_owned(), of: of?, set_untouched_to: rule? })
            },
        );
    }
    tables
}

/// Checks that every edit has a source; `candidate` says whether training ends in a table.
pub(super) fn edit_sources(
    fields: &mut Fields<'_>,
    tables: &Tables,
    candidate: bool,
    faults: &mut Faults,
) {
    let spelling = if fields.get("edits").is_some() { "edits" } else { "edit" };
    for (index, edit) in tables.edits.iter().enumerate() {
        let Some(edit) = edit else { continue };
        let known = tables.prior_names.iter().map(String::as_str);
        let known: Vec<_> = known.chain(candidate.then_some(CANDIDATE)).collect();
        if !known.contains(&edit.of.as_str()) {
            let place = fields.place().key(spelling).index(index).key("of");
            let guess = did_you_mean(&edit.of, known.iter().copied());
            let all = if known.is_empty() { String::from("none") } else { known.join(", ") };
            faults.add(
                &place,
                format!(
                    "no table is called {}{guess}; tables that can be edited: {all}",
                    Quoted(&edit.of)
                ),
            );
        }
    }
}
