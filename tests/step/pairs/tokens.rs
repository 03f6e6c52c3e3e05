//! A request whose tokens change while others change what is in flight, engines and caps: C5, whatever comes between
//! what.
//!
//! Once the other change has returned, tokens that are still to be added are added if there is room for them in the
//! table after it, and not otherwise.

use super::Pair;
use super::changes::{CHANGES, Change, Promise, change, grow};
use super::routes::caps_hold;
use crate::Result;
use crate::scene::{Scene, TOKENS, ensure};
use headcount::{Options, Permit, Request, RouteError, Table, View};
use headcount_tests::{Lead, Tracee};

/// A request on engine 0 that gets other tokens.
#[derive(Clone, Copy, Debug)]
struct Set {
    name: &'static str,
    tokens: u32,
    table_capped: bool,
}

const SETS: [Set; 3] = [
    Set {
        name: "AddTokens",
        tokens: 2 * TOKENS,
        table_capped: false,
    },
    Set {
        name: "AddTokensTableCapped",
        tokens: 2 * TOKENS,
        table_capped: true,
    },
    Set {
        name: "GiveTokensBack",
        tokens: 1,
        table_capped: false,
    },
];

/// Where there is room for the tokens of one, and what changes that.
const ROOM: [Change; 6] = [
    change("LastTokens", |scene| grow(scene, 0, TOKENS)).after(cap_engine),
    change("LastTokensOfARequest", |scene| match scene.pin(&[0]) {
        Err(error) if matches!(error.downcast_ref(), Some(RouteError::Saturated { .. })) => Ok(()),
        result => result,
    })
    .after(cap_engine),
    change("LastTokensInTable", |scene| grow(scene, 1, TOKENS)).after(cap_table),
    change("LowerTokenCap", |scene| {
        Ok(scene.table.set_max_tokens(0, Some(TOKENS))?)
    }),
    change("LowerTokenCapOfTable", |scene| {
        Ok(scene.table.set_total_max_tokens(Some(TOKENS))?)
    }),
    change("RaiseTokenCapOfFull", cap_engine)
        .after(|scene| Ok(scene.table.set_max_tokens(0, Some(3 * TOKENS))?))
        .only_room(),
];

fn cap_engine(scene: &mut Scene) -> Result<()> {
    Ok(scene.table.set_max_tokens(0, Some(4 * TOKENS))?)
}

fn cap_table(scene: &mut Scene) -> Result<()> {
    Ok(scene.table.set_total_max_tokens(Some(7 * TOKENS))?)
}

pub(super) fn pairs() -> Vec<Pair> {
    let others = (CHANGES.into_iter()).filter(|change| !change.name.starts_with("Last"));
    let changes: Vec<Change> = others.chain(ROOM).collect();
    let all = (SETS.into_iter()).flat_map(|set| changes.iter().map(move |&change| (set, change)));
    all.map(|(set, change)| {
        Pair::new(format!("{}-{}", set.name, change.name), move |lead| {
            set.against(&change, lead)
        })
    })
    .collect()
}

impl Set {
    fn options(self) -> Options {
        let options = Table::options().engines(3).max_engines(5);
        let options = options.max_frontends(4).threads(1);
        match self.table_capped {
            // Room for two more requests, also while what is added is reserved as well.
            true => options.max_in_flight(9).max_tokens(10 * TOKENS),
            false => options,
        }
    }

    /// Two requests of others on engine 0, three on engine 1, none on engine 2, which is down.
    fn scene(self) -> Result<Scene> {
        let mut scene = Scene::new(&self.options())?;
        scene.pin(&[0, 0, 1, 1, 1])?;
        scene.table.down(2)?;
        Ok(scene)
    }

    fn against(self, change: &Change, lead: &mut Lead) -> Result<bool> {
        let mut scene = self.scene()?;
        let request = Request::new().pin(0).tokens(TOKENS);
        let mut child: Tracee<(bool, u32)> = Tracee::fork(
            || {
                let frontend = scene.table.join().expect("joins");
                let permit = frontend.route_with(&request).expect("routes");
                (permit, frontend)
            },
            |(mut permit, frontend)| {
                let set = permit.set_tokens(self.tokens);
                (set.is_ok(), permit, frontend)
            },
            |(is_set, permit, frontend)| {
                let tokens = permit.tokens();
                std::mem::forget((permit, frontend));
                (is_set, tokens)
            },
        )?;
        (change.prepare)(&mut scene)?;
        lead.lead(&mut child)?;

        let before = scene.table.view();
        let is_set_before = tokens_on(&before, 0) != self.others(&scene) + TOKENS;
        (change.act)(&mut scene)?;
        let then = scene.table.view();
        caps_hold(&before, &then)?;
        let (is_set, tokens) = child.report()?;
        let after = scene.table.view();
        caps_hold(&then, &after)?;
        scene.counts_are_exact(&[0])?;
        let expected = self.others(&scene) + tokens;
        ensure(tokens_on(&after, 0) == expected, || {
            format!("C5: {after:?}, where permits of {expected} tokens live")
        })?;
        ensure(tokens == if is_set { self.tokens } else { TOKENS }, || {
            format!("C5: a permit of {tokens} tokens, set: {is_set}")
        })?;
        let is_by_the_rule = match change.promise {
            _ if is_set_before => is_set,
            Promise::Room => !is_set || self.has_room(&then),
            Promise::Acted | Promise::Exact => is_set == self.has_room(&then),
        };
        ensure(is_by_the_rule, || {
            format!("C5: set: {is_set}, set before: {is_set_before}, in {then:?}")
        })?;
        drop(child);
        scene.permits.clear();
        scene.ends_well()?;
        Ok(!is_set_before)
    }

    /// The tokens of the other requests on engine 0.
    fn others(self, scene: &Scene) -> u32 {
        let of_dead = scene.held_by_dead.iter().filter(|engine| **engine == 0);
        let permits = scene
            .permits
            .iter()
            .filter(|permit| permit.engine().index() == 0);
        permits.map(Permit::tokens).sum::<u32>() + of_dead.count() as u32 * TOKENS
    }

    /// Whether there is room, in a table of this view, for the tokens that are to be added.
    fn has_room(self, view: &View) -> bool {
        let more = self.tokens.saturating_sub(TOKENS);
        let fits = |cap: Option<u32>, tokens: u32| cap.is_none_or(|cap| tokens + more <= cap);
        let all = view.engines.iter().map(|engine| engine.tokens).sum();
        let cap = view.engine(0).and_then(|engine| engine.max_tokens);
        more == 0 || (fits(cap, tokens_on(view, 0)) && fits(view.max_tokens, all))
    }
}

fn tokens_on(view: &View, engine: usize) -> u32 {
    view.engine(engine).map_or(0, |engine| engine.tokens)
}
