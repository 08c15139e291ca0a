//! Which of the forms on offer a client likes best (RFC 9110 §12.5.1).

use axum::http::{HeaderMap, header};

/// The offer that `Accept` gives the most weight; the first of the offers when it has no preference,
/// or likes none of them: an answer in another form says more than none.
pub fn preferred<'a>(headers: &HeaderMap, offers: &[&'a str]) -> &'a str {
    let mut best: (&str, u16) = (offers.first().copied().unwrap_or_default(), 0);
    let accept: Vec<(String, u16)> = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(range)
        .collect();
    for offer in offers {
        let weight = weight(&accept, offer);
        if weight > best.1 {
            best = (offer, weight);
        }
    }
    best.0
}

/// A media range and its weight in thousandths.
fn range(text: &str) -> Option<(String, u16)> {
    let mut parts = text.split(';').map(|part| part.trim().to_ascii_lowercase());
    let range = parts.next().filter(|range| range.contains('/'))?;
    let mut weight = 1000;
    for part in parts {
        if let Some(q) = part.strip_prefix("q=") {
            let q: f64 = q.parse().ok().filter(|q| (0.0..=1.0).contains(q))?;
            weight = (q * 1000.0).round() as u16;
        }
    }
    Some((range, weight))
}

/// The weight of the most specific range that covers the offer; 0 when none does.
fn weight(accept: &[(String, u16)], offer: &str) -> u16 {
    let kind = offer.split('/').next().unwrap_or_default();
    accept
        .iter()
        .filter_map(|(range, weight)| {
            let specific = match range.as_str() {
                range if range == offer => 2,
                "*/*" => 0,
                range if range.strip_suffix("/*") == Some(kind) => 1,
                _ => return None,
            };
            Some((specific, *weight))
        })
        .max_by_key(|(specific, _)| *specific)
        .map_or(0, |(_, weight)| weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFERS: [&str; 3] = ["application/json", "application/jsonl", "text/csv"];

    fn of(accept: &'static str) -> &'static str {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, header::HeaderValue::from_static(accept));
        preferred(&headers, &OFFERS)
    }

    #[test]
    fn the_largest_weight_of_the_most_specific_range_wins() {
        assert_eq!(preferred(&HeaderMap::new(), &OFFERS), "application/json");
        assert_eq!(of("*/*"), "application/json");
        assert_eq!(of("text/csv"), "text/csv");
        assert_eq!(of("text/*, application/jsonl;q=0.5"), "text/csv");
        assert_eq!(of("application/jsonl; q=0.9, text/csv;q=0.95"), "text/csv");
        assert_eq!(of("application/json;q=0, */*;q=0.1"), "application/jsonl");
        assert_eq!(of("image/png"), "application/json");
        assert_eq!(of("text/csv;q=7, application/jsonl;q=0.1"), "application/jsonl");
        assert_eq!(of(";;;,,/"), "application/json");
    }
}
