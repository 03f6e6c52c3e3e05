//! A small table with a queue, and frontends that wait in it as `src/frontend/waiting` has them wait.
//!
//! What a frontend keeps to itself, its requests in their order, is here in a short form; what it does to the table is
//! the code that ships. A thread that comes to its sleep ends. The kernel's part is played when all threads
//! have ended: whose word has changed since it was read is awake, and goes on ([`QueueScene::settle`]).

use crate::algorithm::place::Choice;
use crate::algorithm::primitive::AtomicU64;
use crate::algorithm::queue::order::{CLASSES, EngineSet, Key, Size, Tag};
use crate::algorithm::queue::serve::Looks;
use crate::algorithm::queue::{Bound, Bounds, Head, Queue, Turn};
use crate::algorithm::record::heads::HeadsRecord;
use crate::algorithm::record::queue::QueueRecord;
use crate::algorithm::registry::Registry;
use crate::algorithm::rows::Limits;
use crate::algorithm::word::{Amount, LaneId, RowState};
use crate::scene::Scene;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{self, Ordering};

/// How many cells tenants have here; a tenant is known by the number of its cell.
const TENANTS: usize = 2;

/// A table with a queue.
pub(crate) struct QueueScene {
    scene: Scene,
    record: QueueRecord,
    tenants: Vec<AtomicU64>,
    heads: Vec<HeadsRecord>,
    /// Nanoseconds. No part of what loom explores.
    clock: atomic::AtomicU64,
}

/// A request that waits, or is going to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    class: usize,
    engines: EngineSet,
    /// Where its head is, which is that of all requests of its class for the same engines.
    place: usize,
    pub(crate) tag: Tag,
}

/// A frontend and its requests.
#[derive(Debug)]
pub(crate) struct Frontend {
    pub(crate) slot: usize,
    waiting: Vec<Waiting>,
    /// The engines of those that got a place, in that order.
    pub(crate) served: Vec<usize>,
    /// The word that it sleeps on, as it was before the last look.
    seen: u64,
}

impl Deref for QueueScene {
    type Target = Scene;

    fn deref(&self) -> &Scene {
        &self.scene
    }
}

impl QueueScene {
    /// A table of engines with this cap, with so many slots; ten requests may wait.
    pub(crate) fn new(engines: usize, cap: u32, slots: usize) -> Self {
        let scene = Scene::with_rows(engines, 1 + CLASSES, slots, 1);
        for engine in 0..engines {
            let limits = Limits::new(1.0, cap);
            scene.rows().set_limits(engine, limits, u32::MAX);
        }
        scene.rows().outdate_terms();
        Self {
            scene,
            record: QueueRecord::new(10),
            tenants: (0..CLASSES + TENANTS).map(|_| AtomicU64::new(0)).collect(),
            heads: (0..slots).map(|_| HeadsRecord::new()).collect(),
            clock: atomic::AtomicU64::new(1),
        }
    }

    /// The table as a whole takes no more than so many requests.
    pub(crate) fn with_total(self, max_requests: u32) -> Self {
        self.scene.set_total(Some(max_requests));
        self
    }

    /// At most so many requests wait, and of class 1 so many; 0: as many as in all.
    pub(crate) fn with_bounds(self, all: u32, of_class_1: u32) -> Self {
        self.queue().set_bounds(Bounds {
            all,
            of_class: [0, of_class_1, 0, 0],
            by_tokens: false,
        });
        self
    }

    /// What a thread of its own is to do with it.
    pub(crate) fn with<T, F: FnOnce(&Self) -> T>(
        self: &Arc<Self>,
        act: F,
    ) -> impl FnOnce() -> T + use<T, F> {
        let scene = Arc::clone(self);
        move || act(&scene)
    }

    pub(crate) fn queue(&self) -> Queue<'_> {
        Queue {
            rows: self.rows(),
            record: &self.record,
            tenants: &self.tenants,
            heads: &self.heads,
        }
    }

    fn registry_with_heads(&self) -> Registry<'_> {
        Registry {
            heads: &self.heads,
            ..self.scene.registry()
        }
    }

    fn own_lane(&self, slot: usize) -> LaneId {
        self.scene.registry().lane(slot, 0)
    }

    pub(crate) fn now(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }

    /// Time passes: more than frontends have patience with one that was woken, and enough to look for dead ones.
    pub(crate) fn time_passes(&self) {
        self.clock.fetch_add(50_000_000, Ordering::Relaxed);
    }

    /// Joins.
    pub(crate) fn frontend(&self) -> Frontend {
        Frontend {
            slot: self.scene.join(),
            waiting: Vec::new(),
            served: Vec::new(),
            seen: 0,
        }
    }

    // What a frontend does.

    /// Has a request begin to wait, if the bounds allow it: counted and with a tag, but not in line yet.
    pub(crate) fn enter(
        &self,
        slot: usize,
        class: usize,
        engines: EngineSet,
        place: usize,
    ) -> Result<Waiting, Bound> {
        self.queue().enter(self.own_lane(slot), class)?;
        Ok(Waiting {
            class,
            engines,
            place,
            tag: self.queue().draw(class, None, 0, 1.0),
        })
    }

    /// A request of class 0 that may go anywhere begins to wait.
    pub(crate) fn enter_any(&self, slot: usize) -> Waiting {
        self.enter(slot, 0, EngineSet::ANY, 0).unwrap()
    }

    /// The same for a tenant.
    pub(crate) fn enter_as(&self, slot: usize, tenant: usize) -> Waiting {
        let tag = (self.queue()).draw(0, Some(tenant as u64), 0, 1.0);
        let request = self.enter_any(slot);
        Waiting { tag, ..request }
    }

    /// A frontend with a request that may go anywhere, and is in line, and for which there is no place yet.
    pub(crate) fn in_line(&self) -> Frontend {
        let mut frontend = self.frontend();
        let request = self.enter_any(frontend.slot);
        self.wait(&mut frontend, &[request]);
        assert!(!frontend.is_done(), "there is a place");
        frontend
    }

    /// A frontend that never waits, and holds a place.
    pub(crate) fn holder(&self) -> usize {
        let slot = self.scene.join();
        self.route_past(slot).expect("there is a place");
        slot
    }

    /// Waits with these requests until all have their places, or the thread would sleep.
    pub(crate) fn wait(&self, frontend: &mut Frontend, requests: &[Waiting]) {
        frontend.waiting.extend(requests);
        frontend.waiting.sort_by_key(|request| request.tag);
        for request in requests {
            self.show(frontend, request.place);
        }
        self.look(frontend);
    }

    /// Looks until all requests have their places, or the thread would sleep.
    pub(crate) fn look(&self, frontend: &mut Frontend) {
        loop {
            self.serve(frontend, false);
            if !self.is_awake(frontend) {
                return;
            }
        }
    }

    /// As `State::serve`, once.
    fn serve(&self, frontend: &mut Frontend, has_left: bool) {
        let looks = &mut Looking(self, frontend);
        frontend.seen = (self.queue()).serve(looks.1.slot, has_left, looks);
    }

    /// Looks some time after it was woken, or would have been, as each frontend does, and reaps before that if it has
    /// to.
    pub(crate) fn look_later(&self, frontend: &mut Frontend) {
        self.time_passes();
        self.look(frontend);
        while !frontend.waiting.is_empty() && self.queue().has_to_reap(self.now()) {
            if self.reap_and_wake() == 0 {
                return;
            }
            self.look(frontend);
        }
    }

    /// Gives up the first request that waits, if it waits still: its caller has left, or its time is over. Returns
    /// whether it did.
    pub(crate) fn give_up(&self, frontend: &mut Frontend) -> bool {
        let Some(&request) = frontend.waiting.first() else {
            return false;
        };
        self.take_out(frontend, request);
        self.serve(frontend, true);
        true
    }

    fn take_out(&self, frontend: &mut Frontend, request: Waiting) {
        (frontend.waiting).retain(|other| other.tag != request.tag);
        if !self.show(frontend, request.place) {
            self.queue().clear(frontend.slot, request.place);
        }
        self.leave_queue(frontend.slot, request.class);
    }

    /// A request of a class waits no more.
    pub(crate) fn leave_queue(&self, slot: usize, class: usize) {
        self.queue().leave(self.own_lane(slot), class);
    }

    /// Shows the first request of a place to others, if there is one.
    fn show(&self, frontend: &Frontend, place: usize) -> bool {
        let first = frontend.waiting.iter().find(|other| other.place == place);
        if let Some(request) = first {
            let head = Head {
                tag: request.tag,
                engines: request.engines,
                size: Size::new(0, 0),
            };
            self.queue().publish(frontend.slot, place, head);
        }
        first.is_some()
    }

    /// Places a request where no request comes first: `Frontend::place_in_turn`.
    fn place_in_turn(&self, slot: usize, engines: EngineSet, key: Key) -> Option<usize> {
        match self.queue().turn(key, engines, self.now()) {
            Turn::Ahead { but } => self.place_behind(slot, engines, &but),
            Turn::Behind => None,
        }
    }

    fn place_behind(&self, slot: usize, engines: EngineSet, but: &[EngineSet]) -> Option<usize> {
        let rows = self.rows();
        let least = || {
            (0..self.engines())
                .filter(|engine| engines.has(*engine) && !but.iter().any(|set| set.has(*engine)))
                .map(|engine| self.choice(engine))
                .filter(|choice| self.has_room(choice))
                .min_by_key(|choice| choice.seen.value())
                .ok_or(())
        };
        let placed = rows.place(self.own_lane(slot), Amount::request(0), least);
        placed.ok().map(|choice| choice.engine())
    }

    fn has_room(&self, choice: &Choice) -> bool {
        let cap = self.rows().limits(choice.engine()).max_in_flight();
        choice.seen.is_active() && choice.seen.value() < cap
    }

    /// Places a request that does not wait: `Frontend::place_by_all`.
    pub(crate) fn route_past(&self, slot: usize) -> Option<usize> {
        let placed = if self.queue().is_awaited() {
            let last = Key {
                tag: Tag::last_of(0),
                slot: usize::MAX,
            };
            self.place_in_turn(slot, EngineSet::ANY, last)
        } else {
            self.place_behind(slot, EngineSet::ANY, &[])
        };
        self.wake_after_placing();
        placed
    }

    /// `Table::wake_after_placing`.
    fn wake_after_placing(&self) {
        if self.queue().was_in_the_way() {
            self.wake_next(None);
        }
    }

    /// Finishes a request, and wakes who waits: the drop of a permit.
    pub(crate) fn finish_and_wake(&self, slot: usize, engine: usize) {
        self.scene.finish(slot, engine, 0);
        if self.queue().is_awaited_after() {
            self.wake_for(engine);
        }
    }

    /// `Table::wake_for`.
    fn wake_for(&self, engine: usize) {
        if let Some(slot) = self.queue().next_for(engine, self.now()) {
            self.queue().note_wake(slot, self.now());
        }
    }

    /// `Table::wake_next`.
    fn wake_next(&self, but: Option<usize>) -> bool {
        let next = self.queue().next_after(self.now());
        let is_own = next.is_some() && next == but;
        if let Some(slot) = next.filter(|_| !is_own) {
            self.queue().note_wake(slot, self.now());
        }
        is_own
    }

    /// `Table::reap`. Returns how many frontends were dead.
    pub(crate) fn reap_and_wake(&self) -> usize {
        let Ok(returned) = self.registry_with_heads().reap(&self.scene);
        if returned.frontends > 0 {
            self.wake_next(None);
        }
        returned.frontends
    }

    /// An engine takes requests again, and all look.
    pub(crate) fn up_and_wake(&self, engine: usize) {
        self.scene.up(engine);
        if self.queue().is_awaited_after() {
            for (key, _) in self.queue().all_heads() {
                self.queue().note_wake(key.slot, self.now());
            }
        }
    }

    // What the kernel does, and what has to be so in the end.

    fn is_awake(&self, frontend: &Frontend) -> bool {
        !frontend.waiting.is_empty() && self.queue().wake_word(frontend.slot) != frontend.seen
    }

    /// Has those go on that are awake, until all sleep. Called when all threads have ended.
    pub(crate) fn settle(&self, frontends: &mut [Frontend]) {
        while let Some(awake) = frontends
            .iter_mut()
            .find(|frontend| self.is_awake(frontend))
        {
            self.look(awake);
        }
    }

    /// Settles, and fails if a frontend sleeps beside a place that it may use, or if anything is counted that is
    /// not there: requests that wait, requests on the engines (`others`: of frontends that never waited).
    pub(crate) fn assert_settled(&self, frontends: &mut [Frontend], others: &[usize]) {
        self.settle(frontends);
        for frontend in &*frontends {
            for request in &frontend.waiting {
                let slot = frontend.slot;
                let key = Key {
                    tag: request.tag,
                    slot,
                };
                let placed = self.place_in_turn(slot, request.engines, key);
                assert_eq!(placed, None, "slot {slot} sleeps beside a free place");
            }
        }
        let permits = frontends.iter().flat_map(|frontend| &frontend.served);
        let permits: Vec<_> = permits.chain(others).map(|engine| (*engine, 0)).collect();
        self.assert_counts(&permits);
        let waiting = || frontends.iter().flat_map(|frontend| &frontend.waiting);
        let queue_row = self.counter().queue_row;
        let counted = self.counter().load(queue_row).value();
        assert_eq!(counted as usize, waiting().count(), "all that wait");
        for class in 0..CLASSES {
            let of_class = waiting().filter(|request| request.class == class);
            assert_eq!(self.queue().waiting(class) as usize, of_class.count());
        }
    }

    /// An engine takes no requests for now.
    pub(crate) fn down(&self, engine: usize) {
        self.rewrite(engine, RowState::Down);
    }
}

impl Frontend {
    /// Whether its requests have their places, or it had none.
    pub(crate) fn is_done(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// A frontend while it looks for places.
struct Looking<'a>(&'a QueueScene, &'a mut Frontend);

impl Looks for Looking<'_> {
    /// As `State::serve_one` and `State::end`.
    fn serve_one(&mut self) -> bool {
        let Self(scene, frontend) = self;
        let slot = frontend.slot;
        let is_head = |(index, request): &(usize, &Waiting)| {
            let mut before = frontend.waiting[..*index].iter();
            before.all(|other| other.place != request.place)
        };
        let waiting = frontend.waiting.iter().enumerate();
        let heads: Vec<_> = waiting.filter(is_head).map(|(_, head)| *head).collect();
        for request in heads {
            let key = Key {
                tag: request.tag,
                slot,
            };
            if let Some(engine) = scene.place_in_turn(slot, request.engines, key) {
                scene.queue().served(request.tag, scene.now());
                scene.take_out(frontend, request);
                frontend.served.push(engine);
                return true;
            }
        }
        false
    }

    fn wake_next(&mut self) -> bool {
        self.0.wake_next(Some(self.1.slot))
    }
}
