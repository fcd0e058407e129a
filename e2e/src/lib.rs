//! The product on a real control plane: what starts one, and what is proven on it.

pub mod control_plane;
pub mod up;
