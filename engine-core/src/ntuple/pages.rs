//! Zeroed memory that exists only where it was written: the one place of this module with `unsafe`.
//!
//! A region is anonymous memory without a swap reservation, so room for billions of entries costs
//! address space at the start and a page where it is touched. It is seen as records of `N` 32-bit
//! atomics; all access is relaxed, so a race can lose an update but can never tear a value.
#![expect(unsafe_code, reason = "viewing mapped bytes as atomics has no safe equivalent")]

use std::io;
use std::slice;
use std::sync::atomic::AtomicU32;

/// How the kernel backs a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PageSize {
    /// Small pages: what a kernel without huge pages gives anyway.
    Small,
    /// Two-megabyte pages where the kernel grants them: a random access then rarely has to look up
    /// where its page is.
    #[default]
    Huge,
}

/// Zeroed records of `N` words. Where the system maps memory they start at a page boundary, so
/// records of 16 words are whole cache lines.
pub(crate) struct Pages<const N: usize> {
    memory: memory::Memory,
    records: usize,
}

impl<const N: usize> Pages<N> {
    /// A region of `records` zero records.
    ///
    /// # Errors
    /// When the address space does not allow it.
    pub(crate) fn zeroed(records: u64, page_size: PageSize) -> io::Result<Self> {
        let records = usize::try_from(records).map_err(|_| {
            io::Error::new(io::ErrorKind::OutOfMemory, "more records than addresses")
        })?;
        let bytes = records
            .checked_mul(size_of::<[AtomicU32; N]>())
            .filter(|&bytes| isize::try_from(bytes).is_ok())
            .ok_or_else(|| {
                io::Error::new(io::ErrorKind::OutOfMemory, "more bytes than addresses")
            })?;
        Ok(Self { memory: memory::Memory::zeroed(bytes, page_size)?, records })
    }

    /// All records. Shared and writable at once: every word is an atomic.
    #[inline]
    pub(crate) fn records(&self) -> &[[AtomicU32; N]] {
        // SAFETY: `memory` owns at least `records * size_of::<[AtomicU32; N]>()` bytes that were
        // checked to fit `isize` and stay mapped, writable and in place as long as `self` lives.
        // They start at a page (or `u32`) boundary, which is aligned for `AtomicU32`; zero bytes and
        // every later store are valid `AtomicU32` values. Nobody holds a plain reference to them:
        // `Memory` only hands out this pointer, and all views of it are made of atomics.
        unsafe { slice::from_raw_parts(self.memory.pointer().cast(), self.records) }
    }
}

/// Asks the processor to fetch the cache line that `place` starts in, ahead of its use.
#[inline]
pub(crate) fn prefetch<T>(place: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing into the program and cannot fault; the instruction
        // belongs to the base set of the architecture.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = place;
}

#[cfg(not(miri))]
mod memory {
    use std::io;

    use memmap2::{Advice, MmapOptions, MmapRaw};

    use super::PageSize;

    pub(super) struct Memory(MmapRaw);

    impl Memory {
        pub(super) fn zeroed(bytes: usize, page_size: PageSize) -> io::Result<Self> {
            let map = MmapOptions::new().len(bytes).no_reserve_swap().map_anon()?;
            #[cfg(target_os = "linux")]
            {
                // A kernel without huge pages refuses both hints; the memory is the same.
                let advice = match page_size {
                    PageSize::Small => Advice::NoHugePage,
                    PageSize::Huge => Advice::HugePage,
                };
                let _refused = map.advise(advice);
            }
            #[cfg(not(target_os = "linux"))]
            let _ = page_size;
            Ok(Self(MmapRaw::from(map)))
        }

        #[inline]
        pub(super) fn pointer(&self) -> *mut u8 {
            self.0.as_mut_ptr()
        }
    }
}

/// The interpreter knows no mappings: an ordinary allocation with the same promises.
#[cfg(miri)]
mod memory {
    use std::cell::UnsafeCell;
    use std::io;

    use super::PageSize;

    pub(super) struct Memory(Box<[UnsafeCell<u32>]>);

    // SAFETY: the cells are only reached through `pointer`, and `Pages` views them as atomics.
    unsafe impl Sync for Memory {}

    impl Memory {
        #[expect(clippy::unnecessary_wraps, reason = "the mapped memory can fail")]
        pub(super) fn zeroed(bytes: usize, _page_size: PageSize) -> io::Result<Self> {
            Ok(Self((0..bytes.div_ceil(4)).map(|_| UnsafeCell::new(0)).collect()))
        }

        pub(super) fn pointer(&self) -> *mut u8 {
            UnsafeCell::raw_get(self.0.as_ptr()).cast()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;
    use std::thread;

    use super::*;

    #[test]
    fn a_region_starts_zero_keeps_stores_and_ends_where_it_says() {
        let pages = Pages::<32>::zeroed(500, PageSize::Small).unwrap();
        assert_eq!(pages.records().len(), 500);
        assert!(pages.records().iter().flatten().all(|word| word.load(Relaxed) == 0));
        pages.records()[499][31].store(7, Relaxed);
        pages.records()[0][0].store(9, Relaxed);
        let sum: u32 = pages.records().iter().flatten().map(|word| word.load(Relaxed)).sum();
        assert_eq!(sum, 16);
        prefetch(&pages.records()[499][31]);
    }

    #[test]
    #[cfg(not(miri))]
    fn records_of_a_cache_line_start_at_one() {
        for page_size in [PageSize::Small, PageSize::Huge] {
            let pages = Pages::<16>::zeroed(500, page_size).unwrap();
            assert_eq!(pages.records().as_ptr().addr() % 64, 0);
        }
    }

    #[test]
    fn threads_share_a_region_without_tearing() {
        let pages = Pages::<1>::zeroed(64, PageSize::Huge).unwrap();
        thread::scope(|scope| {
            for value in [0x1111_1111, 0x2222_2222] {
                let pages = &pages;
                scope.spawn(move || {
                    for [word] in pages.records() {
                        word.store(value, Relaxed);
                    }
                });
            }
        });
        for [word] in pages.records() {
            assert!([0x1111_1111, 0x2222_2222].contains(&word.load(Relaxed)));
        }
    }

    #[test]
    fn an_impossible_size_is_refused() {
        assert!(Pages::<3>::zeroed(u64::MAX / 4, PageSize::Small).is_err());
    }
}
