//! Arguments: engines in one form, tables that are left out, typing errors, and text on which terminals would act.

use crate::command::{Ran, command, on, run, run_with, with_variable};
use crate::scene::Scene;
use headcount::{Engine, Table};
use headcount_tests::{TestTable, directory};
use std::fs;
use std::path::Path;

/// A table's engines: name, weight, caps on requests and on tokens.
fn engines(path: &Path) -> Vec<(String, f32, Option<u32>, Option<u32>)> {
    let view = Table::open_read_only(path).unwrap().view();
    let engines = view.engines.into_iter();
    engines
        .map(|e| (e.name, e.weight, e.max_in_flight, e.max_tokens))
        .collect()
}

/// Runs the command on a path, with an argument that has spaces.
fn with(path: &Path, before: &[&str], last: &str) -> Ran {
    let path = path.to_str().unwrap();
    let before = before.iter().map(|word| word.replace("PATH", path));
    run(before.chain([last.to_owned()]))
}

#[test]
fn create_add_and_a_file_take_engines_in_one_form() {
    let directory = directory();
    let at = |name: &str| directory.path().join(name);
    let forms = [
        "a",
        "b=2",
        "c weight=0.5 max_in_flight=8 max_tokens=900",
        "http://h/v1?m=x&y=2",
    ];
    let expected = vec![
        ("a".to_owned(), 1.0, Some(4), None),
        ("b".to_owned(), 2.0, Some(4), None),
        ("c".to_owned(), 0.5, Some(8), Some(900)),
        ("http://h/v1?m=x&y=2".to_owned(), 1.0, Some(4), None),
    ];
    let mut create = vec!["create".to_owned(), at("typed").display().to_string()];
    create.extend(forms.map(|form| format!("--engine={form}")));
    create.extend(["--max-in-flight".to_owned(), "4".to_owned()]);
    let said = run(create).fine();
    assert!(
        said.contains("@2 c: weight 0.5, at most 8 requests, at most 900 tokens\n"),
        "{said}"
    );
    assert_eq!(engines(&at("typed")), expected);

    let file = at("engines");
    let lines = forms.join("\n  ");
    fs::write(&file, format!("# of a test\n\n{lines}\n")).unwrap();
    let line = format!(
        "create PATH --engines-file {} --max-in-flight 4",
        file.display()
    );
    on(&at("filed"), &line).fine();
    assert_eq!(engines(&at("filed")), expected);

    on(&at("added"), "create PATH --max-engines 8").fine();
    for form in forms {
        with(&at("added"), &["add", "PATH", "--max-in-flight", "4"], form).fine();
    }
    assert_eq!(engines(&at("added")), expected);

    fs::write(&file, "a\nb weigth=1\n").unwrap();
    let said = on(&at("none"), &line).refused(2);
    assert!(
        said.contains("line 2: \"weigth=1\" is unknown; after the name come weight="),
        "{said}"
    );
    assert!(!at("none").exists());
}

#[test]
fn an_engine_that_could_be_meant_in_several_ways_is_refused() {
    let scene = Scene::new();
    let before = engines(scene.path());
    for slip in [
        "gpu=2x",
        "gpu-3=x",
        "gpu-3=1,gpu-4=2",
        "gpu-3,gpu-4",
        "http://10.0.0.7:8000=2,5",
        "http://h/v1?x=y=2.5",
        "gpu-3=",
        "gpu-3=1 weight=2",
        "gpu-3 gpu-4",
    ] {
        let new = scene.path().with_extension("new");
        let ran = with(&new, &["create", "PATH", "--engine"], slip);
        assert_eq!(ran.code, 2, "{slip}: {ran:?}");
        assert!(!new.exists(), "{slip}");
        with(scene.path(), &["add", "PATH"], slip).refused(2);
    }
    let said = with(scene.path(), &["add", "PATH"], "gpu=2x").refused(2);
    assert!(said.contains("write NAME, NAME=WEIGHT or"), "{said}");
    let said = on(scene.path(), "add PATH gpu-3 weight=2").refused(2);
    assert!(said.contains("write both as one argument"), "{said}");
    assert_eq!(engines(scene.path()), before);
}

#[test]
fn a_file_of_engines_may_begin_with_the_mark_of_its_encoding() {
    let directory = directory();
    let (path, file) = (
        directory.path().join("table"),
        directory.path().join("list"),
    );
    let line = format!("create PATH --engines-file {}", file.display());
    fs::write(&file, "\u{feff}gpu-0\ngpu-1=2\n").unwrap();
    on(&path, &line).fine();
    let names: Vec<_> = engines(&path).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["gpu-0", "gpu-1"]);
    // The mark of another encoding, of which no letter is read.
    fs::write(&file, b"\xff\xfeg\0").unwrap();
    let said = on(&path.with_extension("new"), &line).refused(2);
    assert!(said.contains("; save it as UTF-8"), "{said}");
}

#[test]
fn a_query_that_could_end_with_a_weight_is_answered_with_how_to_type_it() {
    let scene = Scene::new();
    for name in ["http://h/v1?x=y,z=2", "http://h/v1?x=y=2.5", "h?a&b=c=d"] {
        let said = with(scene.path(), &["add", "PATH"], name).refused(2);
        let (_, after) = said.split_once("; write \"").expect("a way out");
        let (way_out, _) = after.split_once("\", as one argument").expect("its end");
        with(scene.path(), &["add", "PATH"], way_out).fine();
        let (last, weight, ..) = engines(scene.path()).pop().unwrap();
        assert_eq!((last.as_str(), weight), (name, 1.0));
    }
}

#[test]
fn an_engine_is_given_once_and_a_line_is_done_whole_or_not_at_all() {
    let scene = Scene::new();
    let before = fs::read(scene.path()).unwrap();
    for line in [
        "remove PATH gpu-0 gpu-0",
        "drain PATH gpu-0 gpu-1 @0",
        "down PATH @2 @2",
        "add PATH new new=2",
    ] {
        let said = on(scene.path(), line).refused(2);
        assert!(said.contains("is given twice; give it once"), "{said}");
    }
    let said = on(scene.path(), "add PATH new gpu-1").refused(1);
    assert!(
        said.contains("engine 1 already has the name \"gpu-1\""),
        "{said}"
    );
    assert!(fs::read(scene.path()).unwrap() == before, "no byte");
}

#[test]
fn a_weight_that_is_typed_as_an_option_is_answered_with_how_to_type_it() {
    let scene = Scene::new();
    for line in [
        "add PATH gpu-7 --weight 2",
        "add PATH gpu-7 --weight",
        "apply PATH -e gpu-7 --weight=2",
        "create PATH-2 -e gpu-7 --weight 2",
    ] {
        let ran = on(scene.path(), line);
        assert_eq!(ran.code, 2, "{line}: {ran:?}");
        let tip = "tip: a weight belongs to its engine; write NAME=WEIGHT or \"NAME weight=W\"";
        assert!(ran.err.contains(tip), "{line}: {ran:?}");
    }
    assert!(!on(scene.path(), "add --help").fine().contains("--weight"));
}

#[test]
fn a_cap_of_nothing_is_none_and_one_of_zero_is_refused() {
    let scene = Scene::new();
    for line in [
        "cap PATH gpu-0 0",
        "cap PATH gpu-0 --max-tokens 0",
        "cap PATH --max-in-flight-total 0",
        "create PATH-2 -e a --max-tokens-total 0",
        "create PATH-2 -e a --max-in-flight 0",
    ] {
        let ran = on(scene.path(), line);
        assert_eq!(ran.code, 2, "{line}: {ran:?}");
    }
    let said = on(scene.path(), "cap PATH gpu-0 1 --max-tokens 1").fine();
    assert_eq!(said, "gpu-0: at most 1 request, at most 1 token\n");
    let ran = on(scene.path(), "create PATH-2 -e a --mode 060");
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("let the owner read and write"), "{ran:?}");
}

#[test]
fn a_cap_of_each_engine_and_one_of_all_have_flags_of_their_own() {
    let directory = directory();
    let path = directory.path().join("table");
    let line = "create PATH -e a -e b --max-in-flight 5 --max-tokens 70 \
                --max-in-flight-total 8 --max-tokens-total 100";
    let said = on(&path, line).fine();
    for line in [
        "@0 a: weight 1, at most 5 requests, at most 70 tokens\n",
        "@1 b: weight 1, at most 5 requests, at most 70 tokens\n",
        "all engines together: at most 8 requests, at most 100 tokens\n",
    ] {
        assert!(said.contains(line), "{said}");
    }
    let view = Table::open(&path).unwrap().view();
    assert_eq!((view.max_in_flight, view.max_tokens), (Some(8), Some(100)));
    let caps = view.engines.iter().map(|e| (e.max_in_flight, e.max_tokens));
    assert_eq!(caps.collect::<Vec<_>>(), [(Some(5), Some(70)); 2]);
}

#[test]
fn an_engine_of_create_that_lacks_its_flag_is_not_taken_for_the_path() {
    let directory = directory();
    let path = directory.path().join("table");
    let create = |last: &str| {
        let mut command = command();
        command.env("HEADCOUNT_TABLE", &path);
        command.current_dir(directory.path());
        command.args(["create", "--engine", "a", last]);
        run_with(command)
    };
    for engine in ["b", "gpu/b", "http://b:1/v1"] {
        let said = create(engine).refused(2);
        let advice = format!("write --engine before each engine (--engine {engine})");
        assert!(said.contains(&advice), "{said}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    create("./b").fine();
    create(directory.path().join("c").to_str().unwrap()).fine();
    assert!(directory.path().join("b").exists() && directory.path().join("c").exists());
    assert!(!path.exists());
}

#[test]
fn a_table_of_no_engines_is_created_only_if_that_is_said() {
    let directory = directory();
    let path = directory.path().join("table");
    let said = on(&path, "create PATH").refused(2);
    assert!(said.contains("which engines? give --engine"), "{said}");
    fs::write(directory.path().join("list"), "# none\n").unwrap();
    let list = directory.path().join("list");
    let line = format!("create PATH --engines-file {}", list.display());
    on(&path, &line).refused(2);
    assert!(!path.exists());
    let said = on(&path, "create PATH --max-engines 4").fine();
    assert!(
        said.contains("\n! no engine takes requests; `headcount add` gives it some\n"),
        "{said}"
    );
}

#[test]
fn without_a_table_it_says_how_to_name_one() {
    let scene = Scene::new();
    for line in [
        "show",
        "show --json",
        "top",
        "metrics --once",
        "rm",
        "reap",
        "verify",
        "dump",
        "create",
        "drain",
        "drain gpu-0",
        "drain gpu-0 gpu-1",
        "add gpu-9",
        "cap gpu-0 5",
        "weight gpu-0 5",
    ] {
        let said = on(scene.path(), line).refused(2);
        let wanted = "no table: give PATH, or set HEADCOUNT_TABLE; ";
        assert!(said.contains(wanted), "{line}: {said}");
        // Set to nothing is not set.
        let said = with_variable(Path::new(""), line).refused(2);
        assert!(said.contains(wanted), "{line}: {said}");
    }
    let said = on(scene.path(), "drain PATH").refused(2);
    assert!(said.contains("which engine?"), "{said}");
}

#[test]
fn an_unknown_engine_is_answered_with_the_one_that_was_meant_and_all_there_are() {
    let scene = Scene::new();
    let said = on(scene.path(), "drain PATH gpu1").refused(2);
    assert!(
        said.ends_with("did you mean \"gpu-1\"? its engines are gpu-0, gpu-1, gpu-2\n"),
        "{said}"
    );
    let said = on(scene.path(), "weight PATH whatever 2").refused(2);
    assert!(
        said.ends_with("; its engines are gpu-0, gpu-1, gpu-2\n"),
        "{said}"
    );
    // With the variable, a path that is none is taken for an engine.
    let said = with_variable(scene.path(), "drain /nowhere/table gpu-0").refused(2);
    assert!(said.contains(", and no file of that name; "), "{said}");
    let many = TestTable::new(&Table::options().engines(30));
    let said = on(many.path(), "cap PATH @30 2").refused(2);
    assert!(
        said.contains("0, 1, 2, 3, 4, 5, 6, 7 and 22 more; `headcount show` lists them"),
        "{said}"
    );
    let none = TestTable::new(&Table::options().max_engines(4));
    let said = on(none.path(), "down PATH x").refused(2);
    assert!(
        said.contains("it has no engines; `headcount add`"),
        "{said}"
    );
}

#[test]
fn numbers_below_zero_are_numbers_and_not_options() {
    let scene = Scene::new();
    let said = on(scene.path(), "weight PATH gpu-0 -1").refused(2);
    assert!(said.contains("the weight \"-1\" is not valid"), "{said}");
    let said = on(scene.path(), "cap PATH gpu-0 -1").refused(2);
    assert!(said.contains("the cap \"-1\" is not valid"), "{said}");
    for line in [
        "cap PATH gpu-0 --max-tokens -1",
        "add PATH x --max-in-flight -1",
        "create PATH-2 -e a --max-tokens-total -1",
        "create PATH-2 -e a --max-frontends -1",
        "show PATH --stale-after -1",
        "metrics PATH --once --stale-after -1",
    ] {
        let ran = on(scene.path(), line);
        assert_eq!(ran.code, 2, "{line}: {ran:?}");
        assert!(ran.err.contains("invalid value '-1'"), "{line}: {ran:?}");
    }
}

/// What terminals act on, and what they show as nothing.
const ACTED_ON: &str = "\x1b[2J\u{9b}31m\u{7}\u{202e}\u{2028}\u{ad}\u{e0041}";

#[test]
fn nothing_that_a_terminal_acts_on_is_printed_whatever_the_path_or_name() {
    let directory = directory();
    let path = directory.path().join(format!("t{ACTED_ON}"));
    let path = path.to_str().unwrap();
    // A name may change the direction of the text after it. It has no control characters.
    let name = "gpu\u{202e}";
    let missing = format!("{path}-2");
    let argument = format!("--{ACTED_ON}");
    let engine = format!("--engine=a{ACTED_ON}");
    for line in [
        vec!["create", path, "--engine", name],
        vec!["create", path, "--engine", name],
        vec!["create", &missing, &engine],
        vec!["create", &missing, "--engines-file", &missing],
        vec!["show", path],
        vec!["show", path, "--json"],
        vec!["list", directory.path().to_str().unwrap()],
        vec!["list", directory.path().to_str().unwrap(), "--json"],
        vec!["list", &missing],
        vec!["drain", path, name],
        vec!["drain", path, ACTED_ON],
        vec!["weight", path, name, "2"],
        vec!["weight", path, name, ACTED_ON],
        vec!["cap", path, name, "2"],
        vec!["cap", path, name, ACTED_ON],
        vec!["add", path, "b\u{202e}"],
        vec!["add", path, ACTED_ON],
        vec!["remove", path, "b\u{202e}"],
        vec!["metrics", path, "--once"],
        vec!["metrics", &missing, "--once"],
        vec!["verify", path],
        vec!["verify", path, "--json"],
        vec!["dump", path],
        vec!["reap", path],
        vec!["man", "--to", "/dev/null/\x1b[2J"],
        vec!["show", path, &argument],
        vec!["show", path, "--stale-after", ACTED_ON],
        vec![ACTED_ON],
        vec!["rm", path],
        vec!["rm", path],
    ] {
        // On a terminal colours would be printed, too.
        let ran = run(&line);
        let is_seen = |c: char| {
            c == '\n' || !(c.is_control() || "\u{202e}\u{2028}\u{ad}\u{e0041}".contains(c))
        };
        for text in [&ran.out, &ran.err] {
            assert!(text.chars().all(is_seen), "{line:?}: {text:?}");
        }
    }
}

#[test]
fn json_says_a_path_exactly_and_has_nothing_in_it_that_a_terminal_acts_on() {
    let directory = directory();
    let path = directory.path().join(format!("t{ACTED_ON}"));
    let _table = Table::options().engines(1).create(&path).unwrap();
    let shown = run(["show".as_ref(), path.as_os_str(), "--json".as_ref()]).fine();
    let is_acted_on = |c: char| c != '\n' && ACTED_ON.contains(c) && !c.is_ascii_graphic();
    assert!(!shown.contains(is_acted_on), "{shown:?}");
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["path"].as_str(), path.to_str());
}

#[test]
fn names_are_whole_where_no_terminal_cuts_them() {
    let name = "http://10.0.0.7:8000/v1/a-long-name-of-an-engine-in-a-cluster-of-some-size";
    let options = Table::options().engine(Engine::named(name).weight(2.0).max_tokens(9));
    let table = TestTable::new(&options);
    assert!(on(table.path(), "show PATH").fine().contains(name));
    let narrow = |columns: &str| {
        let mut command = command();
        command
            .arg("show")
            .arg(table.path())
            .env("COLUMNS", columns);
        run_with(command).fine()
    };
    for columns in [40, 60, 80, 100] {
        let shown = narrow(&columns.to_string());
        let engines = shown.lines().skip_while(|line| !line.starts_with("ENGINE"));
        let engines: Vec<_> = engines.take(2).collect();
        let widest = engines.iter().map(|line| line.chars().count()).max();
        assert!(widest.unwrap() <= columns, "{shown}");
        assert!(engines[0].contains("WEIGHT"), "{shown}");
        assert!(engines[0].contains("TOK-CAP"), "{shown}");
        assert!(
            !shown.contains(name) && shown.contains("size active"),
            "{shown}"
        );
    }
    for nonsense in ["", "0", "wide"] {
        assert!(narrow(nonsense).contains(name), "{nonsense:?}");
    }
}
