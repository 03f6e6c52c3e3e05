//! Publications that no reader ever waits for.
//!
//! A sequence and a few copies (the kernel calls the two-copy form a *seqcount latch*). Publication
//! n lies in copy `n % COPIES`, and `sequence` is the number of the last complete one. The publisher
//! writes the oldest copy, then advances the sequence. One that dies or stops half-way has only
//! touched a copy that no reader is sent to; the next publisher writes that copy again from its start.
//!
//! A reader takes the sequence n, reads copy `n % COPIES`, then takes the sequence again. That copy
//! is touched next by publication `n + COPIES`, which starts after `n + COPIES - 1` is complete, so
//! what was read is whole if the sequence has advanced by less than that. With two copies one
//! publication during a read makes the reader read again; with [`COPIES`] it takes three.
//!
//! The number shares its word with one bit that the publisher has put on the publication as
//! a whole. Most routes need no more than that, and read that one word.
//!
//! The data is read with relaxed atomics between an acquire load and an acquire fence (Boehm, "Can
//! seqlocks get along with programming language memory models?", MSPC 2012).

use crate::algorithm::primitive::{AtomicU64, Ordering, fence};

/// How many publications lie in the table at once.
pub(crate) const COPIES: usize = 4;

/// How often a read starts over before it says that it could not: a reader may be slower than three
/// publications now and then (it was preempted), but not every time.
const TRIES: usize = 32;

/// The publications of a table: words, of which the users of this module know the meaning. Each
/// begins with `HEAD` of them.
#[derive(Clone, Debug)]
pub(crate) struct SeqLatch<'a, const HEAD: usize> {
    /// Number 63 | under pressure 1, of the last complete publication; number 0 means that there was none.
    sequence: &'a AtomicU64,
    /// The words of each copy, found once: a reader has no time to multiply and to check.
    copies: [Buffer<'a, HEAD>; COPIES],
}

/// One publication while it is being read. What its words say counts only once
/// [`SeqLatch::read`] has returned.
///
/// To be loaded relaxed: that decides afterwards whether they belong together.
#[derive(Clone, Debug)]
pub(crate) struct Buffer<'a, const HEAD: usize> {
    pub(crate) head: &'a [AtomicU64; HEAD],
    pub(crate) rest: &'a [AtomicU64],
}

/// Why a read has no publication to show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unread {
    /// Nothing was published yet.
    Empty,
    /// Three publications were completed during every one of many tries.
    Overtaken,
}

impl<'a, const HEAD: usize> SeqLatch<'a, HEAD> {
    /// `words` holds [`COPIES`] publications of the same length, one after the other. `None` if one
    /// has no room for its head.
    pub(crate) fn new(sequence: &'a AtomicU64, words: &'a [AtomicU64]) -> Option<Self> {
        let length = words.len() / COPIES;
        let copy = |number| {
            let words = &words[number * length..(number + 1) * length];
            let (head, rest) = words.split_first_chunk()?;
            Some(Buffer { head, rest })
        };
        Some(Self {
            sequence,
            copies: [copy(0)?, copy(1)?, copy(2)?, copy(3)?],
        })
    }

    /// Reads the last complete publication by calling `look` on it, again if it was overwritten
    /// meanwhile.
    pub(crate) fn read<'r, T>(
        &'r self,
        mut look: impl FnMut(&'r Buffer<'a, HEAD>) -> T,
    ) -> Result<T, Unread> {
        (0..TRIES)
            .map(|_| self.try_read(&mut look))
            .find(|read| !matches!(read, Err(Unread::Overtaken)))
            .unwrap_or(Err(Unread::Overtaken))
    }

    /// One try of [`read`](Self::read): the hot path calls `read` only if this try was overtaken.
    #[inline(always)] // or what it returns passes through memory
    pub(crate) fn try_read<'r, T>(
        &'r self,
        look: impl FnOnce(&'r Buffer<'a, HEAD>) -> T,
    ) -> Result<T, Unread> {
        // Acquire: pairs with the Release in `publish`; who sees the number must see the words.
        let before = self.sequence.load(Ordering::Acquire);
        if number(before) == 0 {
            return Err(Unread::Empty);
        }
        let seen = look(self.copy(number(before)));
        // Acquire fence: pairs with the Release fence in `publish`. If a word that we read is
        // of a later publication, then the number below is at least that of its predecessor.
        fence(Ordering::Acquire);
        // Relaxed: ordered by the fence.
        let after = self.sequence.load(Ordering::Relaxed);
        if number(after).wrapping_sub(number(before)) < COPIES as u64 - 1 {
            Ok(seen)
        } else {
            Err(Unread::Overtaken)
        }
    }

    /// The number of the last complete publication with its bit, [`UNDER_PRESSURE`]; 0 if there was none.
    #[inline]
    pub(crate) fn publication(&self) -> u64 {
        // Relaxed: nothing that was published is read by it.
        self.sequence.load(Ordering::Relaxed)
    }

    /// Publishes the words, and whether an engine is under pressure. The caller must be the only publisher.
    pub(crate) fn publish(&self, words: impl IntoIterator<Item = u64>, is_under_pressure: bool) {
        // Acquire: pairs with the Release below of a publisher before us, so that our fence also
        // orders its number before our words.
        let next = number(self.sequence.load(Ordering::Acquire)).wrapping_add(1);
        // Release fence: pairs with the Acquire fence in `read`; who sees a word from below must
        // see that the sequence had reached our predecessor.
        fence(Ordering::Release);
        let copy = self.copy(next);
        for (to, word) in copy.head.iter().chain(copy.rest).zip(words) {
            // Relaxed: ordered by the fence above and the Release below.
            to.store(word, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `read`; who sees the number must see the words.
        let sequence = (next << 1) | u64::from(is_under_pressure);
        self.sequence.store(sequence, Ordering::Release);
    }

    #[inline]
    fn copy(&self, number: u64) -> &Buffer<'a, HEAD> {
        &self.copies[(number % COPIES as u64) as usize]
    }
}

/// The bit of a [publication](SeqLatch::publication) that its publisher has put on it.
pub(crate) const UNDER_PRESSURE: u64 = 1;

#[inline]
fn number(sequence: u64) -> u64 {
    sequence >> 1
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn load(word: &AtomicU64) -> u64 {
        word.load(Ordering::Relaxed)
    }

    fn words(length: usize) -> Vec<AtomicU64> {
        (0..length * COPIES).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn nothing_published_is_said_so() {
        let (sequence, words) = (AtomicU64::new(0), words(2));
        let latch = SeqLatch::<1>::new(&sequence, &words).unwrap();
        assert_eq!(latch.read(|copy| load(&copy.head[0])), Err(Unread::Empty));
    }

    #[test]
    fn the_last_complete_publication_is_read() {
        let (sequence, words) = (AtomicU64::new(0), words(2));
        let latch = SeqLatch::<1>::new(&sequence, &words).unwrap();
        for n in 1..20 {
            latch.publish([n, n * n], n % 3 == 0);
            assert_eq!(latch.publication() & UNDER_PRESSURE != 0, n % 3 == 0);
            let read = latch.read(|copy| (load(&copy.head[0]), load(&copy.rest[0])));
            assert_eq!(read, Ok((n, n * n)));
        }
    }

    #[test]
    fn a_reader_that_is_overtaken_reads_again_and_gives_up_in_the_end() {
        let (sequence, words) = (AtomicU64::new(0), words(1));
        let latch = SeqLatch::<1>::new(&sequence, &words).unwrap();
        latch.publish([1], false);
        let mut publications = vec![0, 2, 3];
        let read = latch.read(|copy| {
            let word = load(&copy.head[0]);
            (0..publications.pop().unwrap_or(0)).for_each(|n| latch.publish([100 + n], false));
            word
        });
        assert_eq!(
            read,
            Ok(102),
            "overtaken by three, then by two, which does no harm"
        );
        let read = latch.read(|_| (0..3).for_each(|n| latch.publish([n], true)));
        assert_eq!(read, Err(Unread::Overtaken));
    }
}
