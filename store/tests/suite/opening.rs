//! A database that cannot be trusted or understood is refused by name.

use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;

use ropewalk_runtime::Clock;
use ropewalk_schemas::advice::Advice;
use ropewalk_schemas::timer::Timer;
use ropewalk_store::{CommitError, Health, Location, OpenError, Query, Record, Store};

use crate::support::{Bench, changes};

async fn open(bench: &Bench) -> Result<Store, OpenError> {
    Store::open(&Location::Sqlite(bench.path()), bench.clock.clone()).await
}

#[tokio::test]
async fn a_newer_database_is_refused() {
    let bench = Bench::new();
    open(&bench).await.unwrap().close().await.unwrap();
    bench.run("INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         VALUES (9999, 'future', TRUE, x'00', 0)",
    )
    .await;
    let refused = open(&bench).await.unwrap_err();
    assert!(
        matches!(refused, OpenError::Newer { found: 9_999, .. }),
        "{refused}"
    );
}

#[tokio::test]
async fn a_corrupt_page_is_refused_and_the_newest_backup_named() {
    let bench = Bench::new();
    let store = open(&bench).await.unwrap();
    for _ in 0..40 {
        let timer = bench.timer(&"x".repeat(4_000));
        store.commit(changes(|c| c.insert(&timer))).await.unwrap();
    }
    assert_eq!(store.check().await.unwrap(), Health::Intact);
    let backups = bench.directory.path().join("backups");
    let kept = store.backup(&backups, 3).await.unwrap();
    store.close().await.unwrap();
    let size = std::fs::metadata(bench.path()).unwrap().len();
    let mut file = std::fs::File::options()
        .write(true)
        .open(bench.path())
        .unwrap();
    for page in size / 4096 - 20..size / 4096 - 4 {
        file.seek(SeekFrom::Start(page * 4096)).unwrap();
        file.write_all(&[0x5a; 64]).unwrap();
    }
    drop(file);
    let refused = open(&bench).await.unwrap_err();
    assert!(
        matches!(&refused, OpenError::Damaged { backup: Some(backup), .. } if *backup == kept),
        "{refused}"
    );
    assert!(!refused.to_string().contains('\n'));

    let restored = Store::open(&Location::Sqlite(kept), bench.clock.clone())
        .await
        .unwrap();
    assert_eq!(restored.count::<Timer>(Query::new()).await.unwrap(), 40);
}

#[tokio::test]
async fn a_lost_database_is_not_made_anew_beside_its_backups() {
    let bench = Bench::new();
    let store = open(&bench).await.unwrap();
    let backups = bench.directory.path().join("backups");
    let kept = store.backup(&backups, 3).await.unwrap();
    store.close().await.unwrap();
    std::fs::write(bench.path(), "").unwrap();
    for lost in ["emptied", "removed"] {
        let refused = open(&bench).await.unwrap_err();
        assert!(
            matches!(&refused, OpenError::Emptied { backup, .. } if *backup == kept),
            "{lost}: {refused}"
        );
        let next = refused.next().unwrap_or_default();
        assert!(next.contains(&kept.display().to_string()), "{next}");
        // The second round opens what is not there at all.
        drop(std::fs::remove_file(bench.path()));
    }
    assert!(!bench.path().exists(), "a refusal makes no file");
    std::fs::copy(&kept, bench.path()).unwrap();
    open(&bench).await.unwrap().close().await.unwrap();
}

#[tokio::test]
async fn a_database_that_is_older_than_what_was_there_is_refused_until_somebody_wants_it() {
    let bench = Bench::new();
    let store = open(&bench).await.unwrap();
    store
        .commit(changes(|c| c.emit(bench.skipped("task/a", "r"))))
        .await
        .unwrap();
    let backups = bench.directory.path().join("backups");
    let kept = store.backup(&backups, 3).await.unwrap();
    store
        .commit(changes(|c| c.emit(bench.skipped("task/a", "r"))))
        .await
        .unwrap();
    store.close().await.unwrap();
    let newer = std::fs::read(bench.path()).unwrap();

    std::fs::copy(&kept, bench.path()).unwrap();
    let refused = open(&bench).await.unwrap_err();
    let OpenError::Older {
        found, seen, mark, ..
    } = &refused
    else {
        panic!("{refused}");
    };
    assert_eq!((*found, *seen), (1, 2));
    let next = refused.next().unwrap_or_default();
    assert!(next.contains(&mark.display().to_string()), "{next}");
    assert!(!refused.to_string().contains('\n'));
    // What was there before opens as ever, and the older one on the word of a person.
    std::fs::write(bench.path(), newer).unwrap();
    open(&bench).await.unwrap().close().await.unwrap();
    std::fs::copy(&kept, bench.path()).unwrap();
    std::fs::remove_file(mark).unwrap();
    open(&bench).await.unwrap().close().await.unwrap();
}

#[tokio::test]
async fn a_lost_database_without_a_backup_is_not_made_anew_unseen() {
    let bench = Bench::new();
    let store = open(&bench).await.unwrap();
    store
        .commit(changes(|c| c.emit(bench.skipped("task/a", "r"))))
        .await
        .unwrap();
    store.close().await.unwrap();
    std::fs::remove_file(bench.path()).unwrap();
    let refused = open(&bench).await.unwrap_err();
    let OpenError::Lost { mark, .. } = &refused else {
        panic!("{refused}");
    };
    assert!(!bench.path().exists(), "a refusal makes no file");
    std::fs::remove_file(mark).unwrap();
    open(&bench).await.unwrap().close().await.unwrap();
}

#[tokio::test]
async fn a_database_that_is_taken_away_under_a_process_is_written_no_more() {
    for replaced in [false, true] {
        let bench = Bench::new();
        let store = open(&bench).await.unwrap();
        store
            .commit(changes(|c| c.emit(bench.skipped("task/a", "r"))))
            .await
            .unwrap();
        let refusing = store.refusing();
        assert!(store.refusal().is_none());
        let content = std::fs::read(bench.path()).unwrap();
        std::fs::remove_file(bench.path()).unwrap();
        if replaced {
            std::fs::write(bench.path(), content).unwrap();
        }
        let refused = store
            .commit(changes(|c| c.emit(bench.skipped("task/a", "r"))))
            .await;
        let Err(CommitError::Gone(path)) = &refused else {
            panic!("{refused:?}");
        };
        assert_eq!(*path, bench.path());
        assert!(matches!(refusing.await, CommitError::Gone(_)));
        let later = store.commit(changes(|c| c.insert(&bench.timer("t")))).await;
        assert!(matches!(later, Err(CommitError::Gone(_))), "{later:?}");
        assert_eq!(
            bench.path().exists(),
            replaced,
            "nothing is made in its place"
        );
    }
}

#[tokio::test]
async fn the_oldest_backups_make_room() {
    let bench = Bench::new();
    let store = open(&bench).await.unwrap();
    let directory = bench.directory.path().join("kept");
    let mut made = Vec::new();
    for _ in 0..5 {
        bench.clock.advance(std::time::Duration::from_mins(1));
        made.push(store.backup(&directory, 3).await.unwrap());
    }
    let there: Vec<bool> = made.iter().map(|path| path.exists()).collect();
    assert_eq!(there, [false, false, true, true, true]);
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), 3);
}

#[tokio::test]
async fn what_is_no_database_is_refused() {
    let bench = Bench::new();
    std::fs::write(
        bench.path(),
        "this is no database, it is a letter".repeat(200),
    )
    .unwrap();
    let refused = open(&bench).await.unwrap_err();
    assert!(matches!(refused, OpenError::NotADatabase(_)), "{refused}");

    let directory = Location::Sqlite(bench.directory.path().to_owned());
    let refused = Store::open(&directory, Clock::system()).await.unwrap_err();
    assert!(matches!(refused, OpenError::NotAFile(_)), "{refused}");
}

#[tokio::test]
async fn a_file_in_place_of_a_directory_is_refused() {
    let bench = Bench::new();
    std::fs::write(bench.path(), "").unwrap();
    let below = Location::Sqlite(bench.path().join("ropewalk.db"));
    let refused = Store::open(&below, Clock::system()).await.unwrap_err();
    assert!(
        matches!(refused, OpenError::Unreachable { .. }),
        "{refused}"
    );
}

#[tokio::test]
async fn a_backup_is_made_before_the_tables_are_touched() {
    let bench = Bench::new();
    bench.make_tables(1).await;
    let timer = bench.timer("kept");
    let body = serde_json::to_string(&timer).unwrap();
    bench.lay("timers", &timer.key(), &[], &body).await;
    // No step leads on from this made-up version, so that what follows the backup fails.
    bench.run("UPDATE _sqlx_migrations SET version = 0").await;
    let refused = open(&bench).await.unwrap_err();
    assert!(matches!(refused, OpenError::Migration { .. }), "{refused}");
    let mut kept = std::fs::read_dir(bench.directory.path().join("backups")).unwrap();
    let kept = kept.next().unwrap().unwrap().path();
    std::fs::copy(kept, bench.path()).unwrap();
    // With the right version the steps that are missing lead on.
    bench.run("UPDATE _sqlx_migrations SET version = 1").await;
    let restored = open(&bench).await.unwrap();
    assert_eq!(restored.count::<Timer>(Query::new()).await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_damaged_database_opens_and_soon_refuses_to_be_written() {
    let bench = Bench::new();
    open(&bench).await.unwrap().close().await.unwrap();
    bench
        .run("CREATE TABLE filler (body BLOB); INSERT INTO filler VALUES (zeroblob(70000000))")
        .await;
    let mut file = std::fs::File::options()
        .write(true)
        .open(bench.path())
        .unwrap();
    // The first bytes of a page of a large value name the page that follows.
    file.seek(SeekFrom::Start(10_000 * 4096)).unwrap();
    file.write_all(&[0x5a; 64]).unwrap();
    let store = open(&bench).await.unwrap();
    let refused = async {
        loop {
            let timer = bench.timer("t");
            if let Err(refused) = store.commit(changes(|c| c.insert(&timer))).await {
                break refused;
            }
        }
    };
    let refused = tokio::time::timeout(std::time::Duration::from_secs(30), refused).await;
    assert!(matches!(refused, Ok(CommitError::Damaged(_))));
}

#[tokio::test]
async fn a_database_that_takes_no_more_is_found_by_a_write_that_leaves_nothing() {
    let bench = Bench::new();
    let store = open(&bench).await.unwrap();
    let before = store.statistics().await.unwrap();
    store.try_write().await.unwrap();
    assert_eq!(store.statistics().await.unwrap(), before);
    store.close().await.unwrap();
    let file = std::fs::File::options().write(true).open(bench.path());
    // This version of the form is only read, also by who may do everything.
    file.unwrap().write_all_at(&[3], 18).unwrap();
    let store = open(&bench).await.unwrap();
    assert_eq!(store.check().await.unwrap(), Health::Intact);
    let refused = store.try_write().await.unwrap_err();
    assert!(matches!(refused, CommitError::ReadOnly), "{refused}");
}
