use tokio::net::UnixDatagram;

use super::*;
use crate::Poker;
use crate::poke::SOCKET;

/// A state directory `depth` folders deep, and a runtime directory with this mode.
fn homes(root: &Path, depth: usize, mode: u32) -> (PathBuf, PathBuf) {
    let state = root.join("deep".repeat(2)).join("x/".repeat(depth));
    let runtime = root.join("run");
    fs::create_dir_all(&state).unwrap();
    fs::create_dir_all(&runtime).unwrap();
    fs::set_permissions(&runtime, Permissions::from_mode(mode)).unwrap();
    (state, runtime)
}

fn hold(home: &SocketHome) -> HeldSocket<UnixDatagram> {
    home.hold(SOCKET, |path| UnixDatagram::bind(path)).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_socket_is_private_and_reached_however_deep_its_directory_lies() {
    for depth in [1, 60] {
        for in_runtime in [false, true] {
            let root = tempfile::tempdir().unwrap();
            let (state, runtime) = homes(root.path(), depth, 0o700);
            let home = SocketHome::new(&state, in_runtime.then_some(runtime));
            assert!(!Poker::poke(&state).unwrap(), "nobody listens");
            let held = hold(&home);
            assert_eq!(mode(&held.place), 0o600);
            assert!(Poker::poke(&state).unwrap());
            assert_eq!(held.socket.recv(&mut [0; 8]).await.unwrap(), 1);
            drop(held);
            assert!(!Poker::poke(&state).unwrap(), "a leftover counts as nobody");
            let next = hold(&home);
            assert!(Poker::poke(&state).unwrap());
            let place = next.place.clone();
            next.give_up();
            assert!(!place.exists(), "nothing is left");
            assert!(fs::symlink_metadata(state.join(SOCKET)).is_err());
        }
    }
}

#[tokio::test]
async fn sockets_lie_in_the_runtime_directory_of_the_user_where_that_is_private() {
    let root = tempfile::tempdir().unwrap();
    let (state, runtime) = homes(root.path(), 1, 0o700);
    let held = hold(&SocketHome::new(&state, Some(runtime.clone())));
    let ours = runtime.join("ropewalk");
    assert_eq!(mode(&ours), 0o700);
    assert_eq!(held.place.parent(), Some(&*ours));
    assert_eq!(fs::read_link(state.join(SOCKET)).unwrap(), held.place);
    // Another project of the same user is another socket.
    let (other, _) = homes(root.path(), 2, 0o700);
    let second = hold(&SocketHome::new(&other, Some(runtime.clone())));
    assert_ne!(second.place, held.place);
    assert!(held.is_found() && second.is_found());
}

#[tokio::test]
async fn a_runtime_directory_that_others_can_enter_is_not_used() {
    let root = tempfile::tempdir().unwrap();
    let (state, runtime) = homes(root.path(), 1, 0o755);
    let in_state = |runtime: &Path| {
        let held = hold(&SocketHome::new(&state, Some(runtime.to_owned())));
        assert_eq!(held.place, state.join(SOCKET));
        assert!(Poker::poke(&state).unwrap());
    };
    in_state(&runtime);
    in_state(&root.path().join("not-there"));
    fs::set_permissions(&runtime, Permissions::from_mode(0o700)).unwrap();
    // Our folder in it may be a trap that was laid before.
    symlink("/tmp", runtime.join("ropewalk")).unwrap();
    in_state(&runtime);
}
