//! Frontends join and leave while others join, leave, open and reap: each has a place of its own, and the
//! view shows those that are there.

use super::Pair;
use crate::Result;
use crate::scene::{Scene, ensure};
use headcount::{Error, Frontend, Table};
use headcount_tests::{Lead, Tracee};

/// What another process does meanwhile. Returns the frontend that it has afterwards besides its first, if
/// any.
type Act = fn(&mut Scene) -> Result<Option<Frontend>>;

pub(super) fn pairs() -> Vec<Pair> {
    const ACTS: [(&str, Act); 6] = [
        ("Join", |scene| Ok(Some(scene.table.join()?))),
        ("JoinAndLeave", |scene| {
            drop(scene.table.join()?);
            Ok(None)
        }),
        ("Leave", |scene| {
            // Another one is there in its place, so that there is one in any case.
            let next = scene.table.join()?;
            drop(std::mem::replace(&mut scene.own, next));
            Ok(None)
        }),
        ("Reap", |scene| {
            scene.reap()?;
            Ok(None)
        }),
        ("Open", |scene| {
            Table::options().from_fd(&scene.table)?;
            Ok(None)
        }),
        ("Route", |scene| {
            scene.pin(&[0, 1])?;
            Ok(None)
        }),
    ];
    let joins = ACTS.map(|(name, act)| {
        Pair::new(format!("Join-{name}"), move |lead| join(act, lead)).every(31)
    });
    let leaves = ACTS.map(|(name, act)| {
        Pair::new(format!("Leave-{name}"), move |lead| leave(act, lead)).every(3)
    });
    let last = [
        Pair::new("JoinLast-Join", two_for_one_place).every(41),
        Pair::new("LeaveLast-Join", place_that_is_left).every(5),
    ];
    joins.into_iter().chain(leaves).chain(last).collect()
}

fn scene(places: usize) -> Result<Scene> {
    let options = Table::options().engines(2).threads(1).max_frontends(places);
    let mut scene = Scene::new(&options)?;
    scene.pin(&[0])?;
    Ok(scene)
}

/// Fails unless the frontends of the table are those of these slots, all alive, and hold what they do.
fn places_are(scene: &Scene, mut slots: Vec<usize>) -> Result<()> {
    slots.push(scene.own.slot());
    slots.sort_unstable();
    let view = scene.table.view();
    let found: Vec<usize> = view
        .frontends
        .iter()
        .map(|frontend| frontend.slot)
        .collect();
    ensure(found == slots, || {
        format!("the frontends in places {slots:?} are shown in {found:?}")
    })?;
    let wrong = view.frontends.iter().find(|frontend| {
        let held = scene
            .permits
            .iter()
            .filter(|_| frontend.slot == scene.own.slot());
        !frontend.alive || frontend.in_flight != held.count() as u64
    });
    ensure(wrong.is_none(), || format!("shown is {wrong:?}"))
}

/// A child that is about to join. It reports its place.
fn joiner(table: &Table) -> Result<Tracee<Option<usize>>> {
    Ok(Tracee::fork(
        || table.clone(),
        |table| table.join(),
        |joined| {
            let slot = joined.as_ref().ok().map(Frontend::slot);
            std::mem::forget(joined);
            slot
        },
    )?)
}

fn join(act: Act, lead: &mut Lead) -> Result<bool> {
    let mut scene = scene(5)?;
    scene.leave_dead(&[1])?;
    let mut child = joiner(&scene.table)?;
    lead.lead(&mut child)?;
    let is_there = scene.table.view().frontends.len() > 1;
    let is_dead_there = scene.table.view().frontends.iter().any(|f| !f.alive);
    let other = act(&mut scene)?;
    let slot = child
        .report()?
        .ok_or("there was a place, and it did not join")?;
    // In case that its own reap came before that of the other was over.
    scene.reap()?;
    let slots = [slot].into_iter().chain(other.as_ref().map(Frontend::slot));
    if scene.permits.len() == 1 && scene.permits[0].engine().index() == 0 && scene.own.slot() != 0 {
        // The first frontend has left, and its permit keeps its place.
        scene.permits.clear();
    }
    places_are(&scene, slots.collect())?;
    scene.counts_are_exact(&[])?;
    drop((child, other));
    scene.permits.clear();
    scene.ends_well()?;
    Ok(!is_there || is_dead_there)
}

fn leave(act: Act, lead: &mut Lead) -> Result<bool> {
    let mut scene = scene(5)?;
    let mut child: Tracee<()> = Tracee::fork(|| scene.table.join().expect("joins"), drop, |()| ())?;
    scene.leave_dead(&[1])?;
    lead.lead(&mut child)?;
    let places = scene.table.view().frontends;
    let is_there = places.iter().filter(|frontend| frontend.alive).count() > 1;
    let other = act(&mut scene)?;
    child.report()?;
    scene.reap()?;
    if scene.own.slot() != 0 {
        scene.permits.clear();
    }
    places_are(
        &scene,
        other.as_ref().map(Frontend::slot).into_iter().collect(),
    )?;
    scene.counts_are_exact(&[])?;
    drop((child, other));
    scene.permits.clear();
    scene.ends_well()?;
    Ok(is_there)
}

/// Two join, and there is one place: one has it, and the other is told so.
fn two_for_one_place(lead: &mut Lead) -> Result<bool> {
    let scene = scene(2)?;
    let mut child = joiner(&scene.table)?;
    lead.lead(&mut child)?;
    let is_there = scene.table.view().frontends.len() > 1;
    let other = match scene.table.join() {
        Ok(other) => Some(other),
        Err(Error::FrontendsFull { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let slots: Vec<usize> = (child.report()?.into_iter())
        .chain(other.as_ref().map(Frontend::slot))
        .collect();
    ensure(slots.len() == 1, || {
        format!("of two that joined for one place, {} have it", slots.len())
    })?;
    places_are(&scene, slots)?;
    Ok(!is_there)
}

/// The place of one that leaves goes to another, when it has left and not before.
fn place_that_is_left(lead: &mut Lead) -> Result<bool> {
    let scene = scene(2)?;
    let mut child: Tracee<()> = Tracee::fork(|| scene.table.join().expect("joins"), drop, |()| ())?;
    lead.lead(&mut child)?;
    let is_there = scene.table.view().frontends.len() > 1;
    let other = match is_there && !lead.has_ended() {
        // It would be refused after 20 ms, as another pair shows.
        true => None,
        false => scene.table.join().ok(),
    };
    child.report()?;
    let other = match other {
        Some(other) => other,
        None => scene.table.join()?,
    };
    places_are(&scene, vec![other.slot()])?;
    Ok(is_there)
}
