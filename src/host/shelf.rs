//! Cached page-locked memory of one kind: whole blocks of the driver, and small ones carved from
//! chunks.
//!
//! The driver takes 0.3 ms to lock even one page, so small blocks share a chunk. A small block is
//! used again for small requests; once all blocks of a chunk are back, the chunk is carved anew.

use std::collections::BTreeMap;
use std::ptr::NonNull;

use super::pool::HostBlock;
use crate::driver::HostKind;

/// Bytes of a chunk.
pub(super) const CHUNK: usize = 2 << 20;

/// A cached block may be larger than a request by this part of it.
const WASTE: usize = 8;

/// Blocks by their bytes. A size without blocks has no entry.
type Blocks = BTreeMap<usize, Vec<HostBlock>>;

/// Memory of the driver that small blocks are carved from, in order.
#[derive(Debug)]
struct Chunk {
    memory: NonNull<u8>,
    /// Bytes that were carved.
    carved: usize,
    /// Blocks of it that are in use.
    live: usize,
}

// SAFETY: the chunk is the only owner of what was not carved from it, and any thread may use that.
unsafe impl Send for Chunk {}

impl Chunk {
    fn holds(&self, block: &HostBlock) -> bool {
        let first = self.memory.addr().get();
        (first..first + CHUNK).contains(&block.memory.addr().get())
    }
}

/// The memory of one kind that the pool keeps.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    whole: Blocks,
    small: Blocks,
    chunks: Vec<Chunk>,
}

impl Shelf {
    /// Takes the smallest cached block of at least `bytes` bytes that wastes little.
    pub(super) fn fitting(&mut self, bytes: usize) -> Option<HostBlock> {
        let most = bytes.saturating_add(bytes / WASTE);
        let size = |blocks: &Blocks| blocks.range(bytes..=most).next().map(|(&size, _)| size);
        if let Some(size) = size(&self.small) {
            let block = take_from(&mut self.small, size)?;
            self.chunk_of(&block)?.live += 1;
            return Some(block);
        }
        let size = size(&self.whole)?;
        take_from(&mut self.whole, size)
    }

    /// Carves a block of `bytes` bytes, less than a chunk, if there is room without the driver.
    pub(super) fn carve(&mut self, bytes: usize, kind: HostKind) -> Option<HostBlock> {
        let has_room = |chunk: &Chunk| CHUNK - chunk.carved >= bytes;
        let at = match self.chunks.iter().position(has_room) {
            Some(at) => at,
            None => {
                let at = self.chunks.iter().position(|chunk| chunk.live == 0)?;
                self.forget_small(at);
                at
            }
        };
        let chunk = &mut self.chunks[at];
        // SAFETY: the chunk has room for `bytes` more bytes behind those that were carved.
        let memory = unsafe { chunk.memory.byte_add(chunk.carved) };
        chunk.carved += bytes;
        chunk.live += 1;
        Some(HostBlock { memory, bytes, kind, is_carved: true })
    }

    /// Adds a chunk.
    pub(super) fn add(&mut self, memory: NonNull<u8>) {
        self.chunks.push(Chunk { memory, carved: 0, live: 0 });
    }

    /// Takes back a block that nothing uses.
    pub(super) fn put(&mut self, block: HostBlock) {
        let blocks = if block.is_carved {
            if let Some(chunk) = self.chunk_of(&block) {
                chunk.live -= 1;
            }
            &mut self.small
        } else {
            &mut self.whole
        };
        blocks.entry(block.bytes).or_default().push(block);
    }

    /// Returns the bytes that could be freed.
    pub(super) fn idle(&self) -> usize {
        let whole = self.whole.iter().map(|(&size, blocks)| size * blocks.len());
        let chunks = self.chunks.iter().filter(|chunk| chunk.live == 0).map(|_| CHUNK);
        whole.chain(chunks).sum()
    }

    /// Returns the bytes of the largest block or chunk that could be freed; 0 if there is none.
    pub(super) fn largest(&self) -> usize {
        let chunk = self.chunks.iter().find(|chunk| chunk.live == 0).map_or(0, |_| CHUNK);
        self.whole.last_key_value().map_or(0, |(&size, _)| size).max(chunk)
    }

    /// Takes out the largest block or chunk that could be freed, to free it.
    pub(super) fn take_largest(&mut self, kind: HostKind) -> Option<HostBlock> {
        let size = self.largest();
        if let Some(block) = take_from(&mut self.whole, size) {
            return Some(block);
        }
        let at = self.chunks.iter().position(|chunk| chunk.live == 0)?;
        self.forget_small(at);
        let Chunk { memory, .. } = self.chunks.swap_remove(at);
        Some(HostBlock { memory, bytes: CHUNK, kind, is_carved: false })
    }

    /// Joins the blocks of an idle chunk to the chunk again.
    fn forget_small(&mut self, at: usize) {
        let chunk = &mut self.chunks[at];
        chunk.carved = 0;
        self.small.retain(|_, blocks| {
            blocks.retain(|block| !chunk.holds(block));
            !blocks.is_empty()
        });
    }

    fn chunk_of(&mut self, block: &HostBlock) -> Option<&mut Chunk> {
        self.chunks.iter_mut().find(|chunk| chunk.holds(block))
    }
}

/// Takes a block of exactly this size.
fn take_from(blocks: &mut Blocks, size: usize) -> Option<HostBlock> {
    let of_size = blocks.get_mut(&size)?;
    let block = of_size.pop();
    if of_size.is_empty() {
        blocks.remove(&size);
    }
    block
}
