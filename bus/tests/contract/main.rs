//! The contract that every transport keeps, and what the broker adds to it.

mod accounts;
mod broker;
mod cases;
mod cluster;
mod damage;
mod forge;
mod network;
mod processes;
mod publishers;
mod server;
mod sharing;
mod support;
mod watch;

/// Runs every case with every transport.
macro_rules! contract {
    ($($case:ident),+ $(,)?) => {
        mod embedded {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() -> anyhow::Result<()> {
                    crate::cases::$case(crate::support::World::embedded()?).await
                }
            )+
        }

        mod jetstream {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() -> anyhow::Result<()> {
                    crate::cases::$case(crate::support::World::jetstream()?).await
                }
            )+
        }
    };
}

contract! {
    forty_events_of_three_processes_reach_each_subscriber_once,
    urgent_entities_go_first_and_no_more_than_the_bound,
    what_one_subscriber_finished_the_other_still_gets_after_a_restart,
    a_poisoned_entity_parks_alone_and_goes_on_when_its_poison_is_dead,
    a_dead_letter_is_shown_replayed_and_discarded,
    a_new_subscriber_is_given_the_past_it_asks_for,
    who_yields_waits_until_the_others_have_little_to_do,
    large_data_reaches_its_subscriber_whole,
    effects_and_the_end_of_a_delivery_are_one,
    an_event_that_is_not_understood_is_parked_and_stops_nobody,
    a_soft_stop_ends_the_inbox_and_lets_work_in_hand_finish,
    a_soft_stop_ends_whoever_follows_the_timeline,
    a_backlog_drains_completely,
    a_subscriber_is_consumed_once_per_process,
}
