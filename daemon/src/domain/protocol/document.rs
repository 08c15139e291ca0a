//! TOML as the same tree that JSON is read into, with the line of every value.

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::domain::canonical::{
    MAX_FAULTS, MAX_KEY_BYTES, MAX_NESTING, inexact_detail, is_exact, pointer, text,
};
use crate::domain::refusal::{Code, FieldError, Refusal};

/// Lines of a document; a JSON body has none worth telling.
#[derive(Debug, Default)]
pub(super) struct Lines<'t>(Option<(&'t str, Spanned<DeTable<'t>>)>);

impl Lines<'_> {
    /// The 1-based line of what a pointer names, or of the nearest table around it.
    pub(super) fn line_of(&self, pointer: &str) -> Option<usize> {
        let (text, root) = self.0.as_ref()?;
        let mut line = None;
        let mut tables = Some(root.get_ref());
        let mut list: Option<&[Spanned<DeValue<'_>>]> = None;
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            let (at, value) = if let Some(table) = tables {
                let Some((key, value)) = table.iter().find(|(key, _)| *key.get_ref() == token)
                else {
                    break;
                };
                (key.span().start, value)
            } else {
                let Some(value) =
                    list.zip(token.parse::<usize>().ok()).and_then(|(list, index)| list.get(index))
                else {
                    break;
                };
                (value.span().start, value)
            };
            line = Some(line_at(text, at));
            tables = value.get_ref().as_table();
            list = value.get_ref().as_array().map(|items| &items[..]);
        }
        line
    }
}

fn line_at(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&b| b == b'\n').count()
}

/// Reads a TOML document. Numbers that would be rounded or are not finite, and dates, come beside
/// the tree as faults.
pub(super) fn read_toml(bytes: &[u8]) -> Result<(Value, Vec<FieldError>, Lines<'_>), Refusal> {
    let text = text(bytes)?;
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let mut refusal =
            Refusal::new(Code::MalformedDocument, "the document is not TOML that can be read");
        for error in errors.iter().take(20) {
            let offset = error.span().map_or(0, |span| span.start);
            let key = error.span().and_then(|span| text.get(span)).unwrap_or_default();
            let path = path_near(root.get_ref(), offset, key.trim_matches(['"', '\'']));
            let line = line_at(text, offset);
            let message = match error.message() {
                "duplicate key" => format!("the key {key} is written twice"),
                message => message.to_owned(),
            };
            refusal = refusal.at(pointer(&path), format!("{message} (line {line})"));
        }
        return Err(refusal);
    }
    let mut reader = Reader { path: Vec::new(), faults: Vec::new() };
    let value = reader.table(root.get_ref())?;
    Ok((value, reader.faults, Lines(Some((text, root)))))
}

/// The best pointer for a syntax error: the key at fault where it is known under a table that was
/// open at the offset, else the last value before it.
fn path_near(root: &DeTable<'_>, offset: usize, key: &str) -> Vec<String> {
    let mut last = None;
    each_key(root, &mut |at| {
        if at < offset && last.is_none_or(|last| at > last) {
            last = Some(at);
        }
    });
    let path = last.and_then(|last| path_of(root, last)).unwrap_or_default();
    for depth in (0..path.len()).rev() {
        let known = lookup(root, &path[..depth])
            .is_some_and(|table| table.iter().any(|(name, _)| name.get_ref() == key));
        if known {
            return path[..depth].iter().cloned().chain([key.to_owned()]).collect();
        }
    }
    path
}

/// The tables inside a value with the steps that lead to them: itself, or the items of a list.
fn tables_in<'a, 't>(
    value: &'a DeValue<'t>,
) -> impl Iterator<Item = (Option<usize>, &'a DeTable<'t>)> {
    let items = value.as_array().into_iter().flat_map(|items| items.iter().enumerate());
    let items = items.filter_map(|(at, item)| Some((Some(at), item.get_ref().as_table()?)));
    value.as_table().map(|table| (None, table)).into_iter().chain(items)
}

fn each_key(table: &DeTable<'_>, visit: &mut dyn FnMut(usize)) {
    for (key, value) in table {
        visit(key.span().start);
        for (_, inner) in tables_in(value.get_ref()) {
            each_key(inner, visit);
        }
    }
}

fn path_of(table: &DeTable<'_>, offset: usize) -> Option<Vec<String>> {
    for (key, value) in table {
        if key.span().start == offset {
            return Some(vec![key.get_ref().to_string()]);
        }
        for (index, inner) in tables_in(value.get_ref()) {
            if let Some(rest) = path_of(inner, offset) {
                let index = index.map(|index| index.to_string());
                return Some(
                    [key.get_ref().to_string()].into_iter().chain(index).chain(rest).collect(),
                );
            }
        }
    }
    None
}

fn lookup<'a, 't>(root: &'a DeTable<'t>, path: &[String]) -> Option<&'a DeTable<'t>> {
    let Some((first, rest)) = path.split_first() else { return Some(root) };
    let (_, value) = root.iter().find(|(key, _)| key.get_ref() == first)?;
    match (value.get_ref(), rest) {
        (DeValue::Table(inner), rest) => lookup(inner, rest),
        (DeValue::Array(items), [index, rest @ ..]) => {
            lookup(items.get(index.parse::<usize>().ok()?)?.get_ref().as_table()?, rest)
        }
        _ => None,
    }
}

struct Reader {
    path: Vec<String>,
    faults: Vec<FieldError>,
}

impl Reader {
    fn table(&mut self, table: &DeTable<'_>) -> Result<Value, Refusal> {
        let mut map = Map::new();
        for (key, value) in table {
            if key.get_ref().len() > MAX_KEY_BYTES {
                return Err(self.stop(format!(
                    "a key has {} bytes; at most {MAX_KEY_BYTES} are read",
                    key.get_ref().len()
                )));
            }
            self.path.push(key.get_ref().to_string());
            let value = self.value(value.get_ref())?;
            self.path.pop();
            map.insert(key.get_ref().to_string(), value);
        }
        Ok(Value::Object(map))
    }

    fn value(&mut self, value: &DeValue<'_>) -> Result<Value, Refusal> {
        if self.path.len() >= MAX_NESTING && (value.is_table() || value.is_array()) {
            return Err(self.stop(format!("nests deeper than {MAX_NESTING} levels")));
        }
        Ok(match value {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Boolean(value) => Value::Bool(*value),
            DeValue::Integer(integer) => {
                match i128::from_str_radix(integer.as_str(), integer.radix()) {
                    Ok(whole) => self.whole(whole),
                    Err(_) => self.fault(inexact_detail(integer.as_str(), f64::INFINITY)),
                }
            }
            DeValue::Float(float) => self.float(float.as_str()),
            DeValue::Datetime(date) => {
                self.fault(format!("{date} is a TOML date; no field of a protocol is one"))
            }
            DeValue::Array(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    self.path.push(index.to_string());
                    list.push(self.value(item.get_ref())?);
                    self.path.pop();
                }
                Value::Array(list)
            }
            DeValue::Table(table) => self.table(table)?,
        })
    }

    fn whole(&mut self, whole: i128) -> Value {
        let nearest = whole as f64;
        let text = whole.to_string();
        if !is_exact(&text, nearest) {
            return self.fault(inexact_detail(&text, nearest));
        }
        match (u64::try_from(whole), i64::try_from(whole)) {
            (Ok(whole), _) => Value::from(whole),
            (_, Ok(whole)) => Value::from(whole),
            _ => Value::from(nearest),
        }
    }

    fn float(&mut self, text: &str) -> Value {
        let digits = text.replace('_', "");
        match digits.parse::<f64>() {
            Ok(value) if value.is_finite() && is_exact(&digits, value) => {
                Number::from_f64(value).map_or(Value::Null, Value::Number)
            }
            Ok(value) if value.is_finite() => self.fault(inexact_detail(&digits, value)),
            _ => self.fault(format!("{text} is not a finite number")),
        }
    }

    /// Notes a fault; the value reads as absent.
    fn fault(&mut self, detail: String) -> Value {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(FieldError { pointer: pointer(&self.path), detail });
        }
        Value::Null
    }

    fn stop(&self, detail: String) -> Refusal {
        Refusal::new(Code::MalformedDocument, "the document is not TOML that can be read")
            .at(pointer(&self.path), detail)
    }
}
