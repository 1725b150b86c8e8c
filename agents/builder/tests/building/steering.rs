//! What people are asked and told, and what follows from their words.

mod amending;
mod by_hand;
mod consent;
mod control;
mod giving_up;
mod halting;
mod hearing;
mod meanwhile;
mod milestones;
mod refusing;
mod reopening;
mod second_task;
mod verdicts;
