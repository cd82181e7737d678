//! Agents of every kind, driven whole: a scripted program, a scripted host, scripted servers, and
//! real programs.

#![allow(clippy::unwrap_used)]

mod acp;
mod command;
mod desk;
mod home;
mod hosts;
mod http;
mod person;
mod sandbox;
mod server;
