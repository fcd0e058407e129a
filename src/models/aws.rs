//! Amazon Web Services, by service.
//!
//! Fields and types are those of provider-upjet-aws 2.6, the same in both scopes.

pub mod cloudfront;
pub mod ec2;
pub mod eks;
pub mod iam;
pub mod rds;
pub mod s3;
