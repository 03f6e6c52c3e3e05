//! Colours: on a terminal that wants them, and nowhere else.

use crate::command::binary;
use crate::scene::Scene;
use crate::tmux::{Terminal, is_there};
use headcount_tests::skipped;

#[test]
fn colours_are_for_terminals_and_never_with_no_color() {
    if !is_there() {
        return skipped(
            "colours_are_for_terminals_and_never_with_no_color",
            "tmux is not installed",
        );
    }
    let scene = Scene::new();
    for (environment, coloured) in [("env", true), ("NO_COLOR=1", false)] {
        for command in ["show", "top"] {
            let (binary, path) = (binary().display(), scene.path().display());
            let line = format!("{environment} '{binary}' {command} '{path}'");
            let terminal = Terminal::run(80, 24, &line);
            terminal.wait_for_text("gpu-2");
            let screen = terminal.coloured();
            // Green is written as a colour of its own, or as the third of the palette.
            let green = ["\x1b[32m", "\x1b[38;5;2m"]
                .iter()
                .any(|g| screen.contains(g));
            assert_eq!(green, coloured, "{line}: {screen:?}");
        }
    }
}
