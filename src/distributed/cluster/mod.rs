//! Redistributions over several hosts, on paper: the traffic of each link and of the network, and
//! the time that a description of the cluster predicts.
//!
//! ```text
//!  Redistribution --> side: grids of parts --> census: messages by size --+--> way: loads, ms --> plan
//!  Cluster (description) -------------------------------------------------+                        |
//!                                        simulate: the same messages, event by event <-------------+
//! ```

mod census;
mod description;
mod load;
mod pairs;
mod plan;
mod side;
mod simulate;
mod way;

pub use description::{Cluster, Link, Port};
pub use load::Load;
pub use plan::{ClusterPlan, Message};
pub use simulate::Order;
pub use way::{Route, Stage, Way};
