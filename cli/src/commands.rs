//! Holds the verbs: one file each, below the file of its noun.

pub mod agent;
pub mod alert;
pub mod build;
pub mod config;
pub mod dead_letter;
pub mod doctor;
pub mod event;
pub mod idea;
pub mod init;
pub mod knowledge;
pub mod lock;
pub mod notice;
pub mod people;
pub mod question;
pub mod review;
pub mod spec;
pub mod trust;
pub mod up;
pub mod usage;
pub mod wait;
