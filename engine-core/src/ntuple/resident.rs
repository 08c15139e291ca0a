//! Which stretches of a lazily mapped region exist, as the kernel's page map has it.
//!
//! A page that was never written reads as zero, but reading it to find that out costs a fault; a
//! region of seventy gigabytes has seventeen million of them. Where the page map cannot be read,
//! the answer is that everything may exist, which is slower and just as true.

use std::ops::Range;

/// The byte ranges of `address..address + bytes`, relative to its start and in order, outside of
/// which all bytes are zero in an anonymous private mapping.
pub(super) fn existing(address: usize, bytes: usize) -> Vec<Range<usize>> {
    let known = page_map().and_then(|map| map.existing(address, bytes));
    known.unwrap_or_else(|| std::iter::once(0..bytes).collect())
}

#[cfg(all(target_os = "linux", not(miri)))]
use linux::page_map;

#[cfg(not(all(target_os = "linux", not(miri))))]
use elsewhere::page_map;

#[cfg(all(target_os = "linux", not(miri)))]
mod linux {
    use std::fs::File;
    use std::ops::Range;
    use std::os::unix::fs::FileExt;
    use std::sync::OnceLock;

    /// Bit 63: the page is in memory; bit 62: it is swapped out, or on its way between places.
    const EXISTS: u64 = 0b11 << 62;
    /// Bytes of one page's entry.
    const ENTRY: usize = 8;

    pub(super) struct PageMap {
        file: File,
        page: usize,
    }

    pub(super) fn page_map() -> Option<&'static PageMap> {
        static MAP: OnceLock<Option<PageMap>> = OnceLock::new();
        MAP.get_or_init(PageMap::open).as_ref()
    }

    impl PageMap {
        /// `None` unless the map answers truly about a page that certainly exists.
        fn open() -> Option<Self> {
            let map = Self { file: File::open("/proc/self/pagemap").ok()?, page: page_size()? };
            let known = vec![1_u8; 3 * map.page];
            let all = std::iter::once(0..known.len()).collect::<Vec<_>>();
            (map.existing(known.as_ptr().addr(), known.len())? == all).then_some(map)
        }

        pub(super) fn existing(&self, address: usize, bytes: usize) -> Option<Vec<Range<usize>>> {
            let (first, last) = (address / self.page, (address + bytes).div_ceil(self.page));
            let mut entries = vec![0; (last - first) * ENTRY];
            self.file.read_exact_at(&mut entries, (first * ENTRY) as u64).ok()?;
            let mut found: Vec<Range<usize>> = Vec::new();
            for (page, entry) in (first..).zip(entries.as_chunks::<ENTRY>().0) {
                if u64::from_ne_bytes(*entry) & EXISTS == 0 {
                    continue;
                }
                let start = (page * self.page).saturating_sub(address);
                let end = ((page + 1) * self.page - address).min(bytes);
                match found.last_mut() {
                    Some(run) if run.end == start => run.end = end,
                    _ => found.push(start..end),
                }
            }
            Some(found)
        }
    }

    /// The page size, from the words the kernel hands to every program.
    fn page_size() -> Option<usize> {
        const PAGE_SIZE: usize = 6;
        let words = std::fs::read("/proc/self/auxv").ok()?;
        let words: Vec<usize> =
            words.as_chunks().0.iter().map(|&word| usize::from_ne_bytes(word)).collect();
        let (pairs, _) = words.as_chunks::<2>();
        pairs.iter().find(|pair| pair[0] == PAGE_SIZE).map(|pair| pair[1]).filter(|&size| size > 0)
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod elsewhere {
    use std::ops::Range;

    pub(super) enum PageMap {}

    pub(super) const fn page_map() -> Option<&'static PageMap> {
        None
    }

    impl PageMap {
        pub(super) const fn existing(&self, _: usize, _: usize) -> Option<Vec<Range<usize>>> {
            match *self {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_exists() {
        let bytes = vec![1_u8; 1_000_000];
        let found = existing(bytes.as_ptr().addr(), bytes.len());
        assert!(found.into_iter().eq(std::iter::once(0..bytes.len())));
    }
}
