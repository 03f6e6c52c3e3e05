//! Every use of a table, one after the other, whatever its result.

use headcount::{Engine, EngineId, EngineStats, Options, Policy, Request, Table};
use std::path::Path;
use std::time::Duration;

/// Opens a table that may hold anything, and uses it in every way.
pub(crate) fn use_everything(path: &Path) {
    // SAFETY: ends this process if something in here hangs.
    unsafe { libc::alarm(20) };
    for table in [
        Table::open(path),
        Table::open_read_only(path),
        Options::default().open_or_create(path),
    ]
    .into_iter()
    .flatten()
    {
        use_table(&table);
    }
    // SAFETY: nothing hung.
    unsafe { libc::alarm(0) };
}

fn use_table(table: &Table) {
    drop(table.view());
    let _ = table.reap();
    let _ = table.publisher().map(|mut publisher| {
        drop(publisher.publish(&[EngineStats::default(); 4]));
        drop(publisher.publish(&[]));
    });
    let joined: Vec<_> = (0..3).filter_map(|_| table.join().ok()).collect();
    for frontend in &joined {
        for policy in [
            Policy::in_flight(),
            Policy::open(),
            Policy::floor(),
            Policy::tokens(),
            Policy::round_robin(),
            Policy::power_of_two(),
            Policy::custom(|engine| engine.in_flight.into()),
        ] {
            let frontend = frontend.clone().with_policy(policy);
            let mut permits: Vec<_> = (0..20)
                .map(|n| frontend.route_with(&Request::new().tokens(n).prefer(1, 8)))
                .collect();
            for (permit, n) in permits.iter_mut().flatten().zip([0, 1, 9, u32::MAX]) {
                let _ = permit.set_tokens(n);
            }
            drop((
                frontend.route(),
                frontend.route_with(&Request::new().pin(2).exclude(&[EngineId::new(1, 2)])),
            ));
            drop((frontend.route_many(3), frontend.route_many(usize::MAX)));
            for class in [0, 3] {
                let request = Request::new().class(class).tenant("t").tokens(5);
                drop(frontend.acquire(&request, Duration::from_millis(1)));
            }
            drop(permits);
        }
    }
    for engine in [0, 3, 4, 63, 64, usize::MAX] {
        drop((table.drain(engine), table.down(engine), table.up(engine)));
        drop((
            table.set_weight(engine, 2.0),
            table.set_caps(engine, Some(3), Some(9)),
        ));
        drop((table.remove(engine), table.up(engine)));
    }
    drop((table.add(Engine::named("x")), table.find("x"), table.view()));
}
