//! Arrays over several GPUs, and their transposes, permutes and redistributions.
//!
//! A [`Split`] says which rank has which box of an array. A [`Redistribution`] plans the copies
//! from one split to another; it is pure, for any number of ranks. An [`Exchange`] runs them on the
//! [`Gpus`] of a host: the kernels that permute within a GPU store into the memory of its peers, so
//! nothing is packed and each byte crosses a link once. GPUs that do not use each other's memory
//! exchange through pinned host memory. A [`Distributed`] array holds the parts.
//!
//! A [`Communicator`] is one rank of several, each with a thread or a process of its own, that send
//! messages to each other. A [`ShardExchange`] redistributes an array among them, of which each
//! rank has its [`Shard`]: through a [`Window`] of each rank's memory where they share a host, else
//! by messages. Several processes find each other by a [`Rendezvous`], and its [`Members`] stay
//! together.
//!
//! [`cluster`] predicts redistributions over several hosts.

mod array;
pub mod cluster;
mod communicator;
mod exchange;
#[cfg(feature = "pipeline")]
mod files;
mod gpus;
mod links;
#[cfg(all(unix, feature = "cuda"))]
mod nccl;
mod order;
mod plan;
mod push;
mod pushes;
mod rendezvous;
mod shards;
mod split;
mod staged;
mod together;
mod ways;

pub use array::Distributed;
pub use communicator::{Aborter, Combine, Communicator, Deadline, Engine, Message, Reduce, Trace, TracedCall, Window};
pub use exchange::Exchange;
pub use gpus::Gpus;
pub use links::{Links, PairLinks, ring, time_copy, time_exchange, time_push};
#[cfg(all(unix, feature = "cuda"))]
pub use nccl::NcclLibrary;
pub use plan::{Move, Redistribution};
#[doc(hidden)]
pub use rendezvous::check_frames;
pub use rendezvous::{Lost, Members, Rendezvous};
pub use shards::{Shard, ShardExchange};
pub use split::{Part, Split};
pub use together::time_together;
