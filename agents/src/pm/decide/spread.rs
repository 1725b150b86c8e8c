//! Decides which loop takes over which task.

use ropewalk_schemas::ComponentName;

/// A living loop with the number of its tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// The loop.
    pub name: ComponentName,
    /// Its tasks, running and assigned.
    pub tasks: usize,
}

/// Gives each of `orphans` to the loop with the least to do, counted anew after each; `None` when no loop lives.
pub fn spread<T>(
    orphans: impl IntoIterator<Item = T>,
    mut loads: Vec<Load>,
) -> Vec<(T, Option<ComponentName>)> {
    orphans
        .into_iter()
        .map(|orphan| {
            let least = loads
                .iter_mut()
                .min_by(|a, b| (a.tasks, a.name.as_str()).cmp(&(b.tasks, b.name.as_str())));
            let to = least.map(|load| {
                load.tasks += 1;
                load.name.clone()
            });
            (orphan, to)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(loads: &[(&str, usize)], orphans: usize, expected: &[Option<&str>]) {
        let loads = loads
            .iter()
            .map(|(name, tasks)| Load {
                name: ComponentName::parse(name).unwrap(),
                tasks: *tasks,
            })
            .collect();
        let given = spread(0..orphans, loads);
        let names: Vec<Option<&str>> = given
            .iter()
            .map(|(_, to)| to.as_ref().map(AsRef::as_ref))
            .collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn work_goes_to_whoever_has_the_least_counted_anew() {
        let (one, three) = (Some("loop-1"), Some("loop-3"));
        check(&[("loop-1", 1), ("loop-3", 1)], 3, &[one, three, one]);
        check(
            &[("loop-1", 3), ("loop-3", 0)],
            4,
            &[three, three, three, one],
        );
        check(&[("loop-3", 0), ("loop-1", 0)], 1, &[one]);
        check(&[("loop-1", 9)], 2, &[one, one]);
        check(&[], 2, &[None, None]);
        check(&[("loop-1", 0)], 0, &[]);
    }
}
