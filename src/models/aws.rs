//! Amazon Web Services, by service.
//!
//! Fields and their types are those of provider-upjet-aws 2.6; both flavours take the same ones.

pub mod cloudfront;
pub mod ec2;
pub mod eks;
pub mod iam;
pub mod rds;
pub mod s3;
