//! A lease has one holder, and a token that a stale holder cannot use.

use futures::future::join_all;
use ropewalk_schemas::lease::{Lease, LeaseState};
use ropewalk_schemas::timer::Timer;
use ropewalk_store::{CommitError, Query};

use crate::support::{Bench, changes, path};

async fn of_five_simultaneous_takers_one_wins_and_the_others_learn_who(bench: Bench) {
    let stores = [bench.open().await, bench.open().await];
    let takers: Vec<_> = (0..5).map(|_| bench.holder()).collect();
    let attempts = takers.iter().enumerate().map(|(number, holder)| {
        let both = changes(|c| {
            c.grant(bench.lease("src/a.rs", holder))
                .grant(bench.lease(&format!("src/{number}.rs"), holder))
        });
        stores[number % 2].commit(both)
    });
    let outcomes = join_all(attempts).await;
    let winner = outcomes.iter().position(Result::is_ok).unwrap();
    for (number, outcome) in outcomes.iter().enumerate() {
        match outcome {
            Ok(_) => assert_eq!(number, winner),
            Err(CommitError::Held { holder, .. }) => assert_eq!(**holder, takers[winner]),
            Err(other) => panic!("{other}"),
        }
    }
    let leases = stores[0].list::<Lease>(Query::new()).await.unwrap();
    assert_eq!(leases.len(), 2, "a loser kept part of its set");
}

async fn tokens_grow_and_a_stale_one_lands_nothing(bench: Bench) {
    let store = bench.open().await;
    let file = path("src/a.rs");
    let (first, second) = (bench.holder(), bench.holder());
    let granted = store
        .commit(changes(|c| c.grant(bench.lease("src/a.rs", &first))))
        .await
        .unwrap();
    let old = granted.token.unwrap();
    store
        .commit(changes(|c| c.renew(&file, old).expire(&file, old)))
        .await
        .unwrap();
    let granted = store
        .commit(changes(|c| c.grant(bench.lease("SRC/A.rs", &second))))
        .await
        .unwrap();
    let new = granted.token.unwrap();
    assert!(new > old);

    let landing = bench.timer("landed");
    let late = store
        .commit(changes(|c| c.insert(&landing).fence(&file, old)))
        .await
        .unwrap_err();
    assert!(matches!(late, CommitError::Fenced { token, .. } if token == old));
    for stale in [
        changes(|c| c.renew(&file, old)),
        changes(|c| c.release(&file, old)),
        changes(|c| c.revoke(&file, old)),
    ] {
        assert!(matches!(
            store.commit(stale).await,
            Err(CommitError::Fenced { .. })
        ));
    }
    assert_eq!(store.count::<Timer>(Query::new()).await.unwrap(), 0);
    store
        .commit(changes(|c| {
            c.insert(&landing).fence(&file, new).release(&file, new)
        }))
        .await
        .unwrap();
    let lease = store.list::<Lease>(Query::new()).await.unwrap().remove(0);
    assert_eq!((lease.state, lease.token), (LeaseState::Released, new));
}

async fn a_late_renewal_beats_an_expiry_that_demands_what_its_judge_saw(bench: Bench) {
    let store = bench.open().await;
    let file = path("src/a.rs");
    let holder = bench.holder();
    let granted = store
        .commit(changes(|c| c.grant(bench.lease("src/a.rs", &holder))))
        .await
        .unwrap();
    let token = granted.token.unwrap();
    let judged = store.list::<Lease>(Query::new()).await.unwrap().remove(0);
    store
        .commit(changes(|c| c.renew(&file, token)))
        .await
        .unwrap();
    let verdict = changes(|c| c.require(&judged).expire(&file, token));
    let refused = store.commit(verdict).await.unwrap_err();
    assert!(matches!(refused, CommitError::Conflict { .. }), "{refused}");
    let lease = store.list::<Lease>(Query::new()).await.unwrap().remove(0);
    assert_eq!((lease.state, lease.renewals), (LeaseState::Granted, 1));
}

async fn an_attempt_extends_its_own_set_with_a_new_token(bench: Bench) {
    let store = bench.open().await;
    let holder = bench.holder();
    let first = store
        .commit(changes(|c| c.grant(bench.lease("a", &holder))))
        .await
        .unwrap();
    let second = store
        .commit(changes(|c| {
            c.grant(bench.lease("b", &holder))
                .grant(bench.lease("a", &holder))
        }))
        .await
        .unwrap();
    assert_eq!(second.token, first.token.map(|token| token + 1));
    let tokens: Vec<_> = store
        .list::<Lease>(Query::new())
        .await
        .unwrap()
        .iter()
        .map(|lease| lease.token)
        .collect();
    assert_eq!(tokens, [2, 2]);
}

on_each_database! {
    of_five_simultaneous_takers_one_wins_and_the_others_learn_who,
    tokens_grow_and_a_stale_one_lands_nothing,
    a_late_renewal_beats_an_expiry_that_demands_what_its_judge_saw,
    an_attempt_extends_its_own_set_with_a_new_token,
}
