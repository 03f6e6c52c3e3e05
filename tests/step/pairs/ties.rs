//! C7: a request that is placed moves its engine to the end of the order of ties; a failed attempt does not.

use super::Pair;
use crate::Result;
use crate::scene::{Scene, ensure};
use headcount::{Engine, Frontend, Options, Table};
use headcount_tests::{Forked, Lead, Tracee};

pub(super) fn pairs() -> Vec<Pair> {
    // By the counts alone, and the general way.
    [("RouteTied-PinTwo", 1.0), ("RouteTiedWeighted-PinTwo", 7.0)]
        .map(|(name, weight)| Pair::new(name, move |lead| point(weight, lead)))
        .into()
}

/// Three idle engines and a fourth that is down, of that weight.
fn options(weight: f32) -> Options {
    let fourth = Engine::named("3").weight(weight);
    let options = Table::options().max_frontends(4).threads(1);
    options.engines(3).engine(fourth)
}

fn scene(weight: f32) -> Result<Scene> {
    let scene = Scene::new(&options(weight))?;
    scene.table.down(3)?;
    Ok(scene)
}

/// The engines of three ties, one after the other.
fn three_ties(frontend: &Frontend) -> Vec<usize> {
    (0..3)
        .map(|_| frontend.route().expect("routes").engine().index())
        .collect()
}

/// The order of ties depends only on the slot of a frontend and on how often the slot was joined.
fn order(weight: f32) -> Result<Vec<usize>> {
    let scene = scene(weight)?;
    let mut scout = Forked::start(|| three_ties(&scene.table.join().expect("joins")))?;
    Ok(scout.report()?)
}

fn point(weight: f32, lead: &mut Lead) -> Result<bool> {
    let order = order(weight)?;
    let [first, second, third] = order[..] else {
        return Err("three engines tie".into());
    };
    let mut scene = scene(weight)?;
    let mut child: Tracee<Vec<usize>> = Tracee::fork(
        || scene.table.join().expect("joins"),
        |frontend| (frontend.route(), frontend),
        |(permit, frontend)| {
            drop(permit.expect("routes"));
            let engines = three_ties(&frontend);
            std::mem::forget(frontend);
            engines
        },
    )?;
    lead.lead(&mut child)?;
    let view = scene.table.view();
    let is_placed = view.engines.iter().any(|engine| engine.in_flight > 0);
    // The attempt on the first fails, and the second engine is alone at the least load.
    scene.pin(&[first, third])?;
    child.finish()?;
    scene.permits.clear();
    let found = child.report()?;
    let expected = if is_placed {
        [second, third, first]
    } else {
        [first, second, third]
    };
    ensure(found == expected, || {
        format!("C7: the ties after it go to {found:?}, and should go to {expected:?}")
    })?;
    drop(child);
    scene.ends_well()?;
    Ok(!is_placed)
}
