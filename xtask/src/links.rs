//! The documentation agrees with the repository: every link between its pages leads somewhere.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A page of the repository.
#[derive(Default)]
struct Page {
    links: Vec<String>,
    /// The parts that a link may name after `#`.
    anchors: BTreeSet<String>,
}

impl Page {
    fn read(markdown: &str) -> Self {
        let mut page = Self::default();
        // The text of the heading that is being read.
        let mut heading: Option<String> = None;
        let mut used = BTreeMap::new();
        for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into_string());
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let slug = slug(&heading.take().unwrap_or_default());
                    let before = used.entry(slug.clone()).or_insert(0);
                    let anchor = match *before {
                        0 => slug,
                        again => format!("{slug}-{again}"),
                    };
                    *before += 1;
                    page.anchors.insert(anchor);
                }
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                Event::Html(html) | Event::InlineHtml(html) => {
                    let ids = html.split("id=\"").skip(1);
                    page.anchors
                        .extend(ids.filter_map(|rest| rest.split('"').next().map(str::to_owned)));
                }
                _ => {}
            }
        }
        page
    }
}

/// The anchor that a heading gets.
fn slug(heading: &str) -> String {
    (heading.to_lowercase().chars())
        .filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            letter => letter.is_alphanumeric().then_some(letter),
        })
        .collect()
}

/// All pages of the repository, by their paths.
fn pages() -> BTreeMap<PathBuf, Page> {
    let mut pages = BTreeMap::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy();
            if name.starts_with('.') || name == "target" || path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".md") {
                let page = Page::read(&fs::read_to_string(&path).unwrap());
                pages.insert(path, page);
            }
        }
    }
    pages
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .canonicalize()
        .unwrap()
}

/// What is wrong with a link of the page at `from`, if anything is.
fn broken(pages: &BTreeMap<PathBuf, Page>, from: &Path, link: &str) -> Option<&'static str> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let to = match path {
        "" => from.to_owned(),
        path => match from.with_file_name(path).canonicalize() {
            Ok(to) => to,
            Err(_) => return Some("there is no such file"),
        },
    };
    if !to.starts_with(root()) {
        return Some("it leads out of the repository");
    }
    match pages.get(&to) {
        Some(page) if !anchor.is_empty() && !page.anchors.contains(anchor) => {
            Some("the page has no such part")
        }
        None if !anchor.is_empty() => Some("that is no page"),
        _ => None,
    }
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let pages = pages();
    let links = (pages.iter())
        .flat_map(|(from, page)| page.links.iter().map(move |link| (from, link.as_str())));
    let wrong: Vec<_> = links
        .clone()
        .filter_map(|(from, link)| {
            let why = broken(&pages, from, link)?;
            Some(format!("{}: {link}: {why}", from.display()))
        })
        .collect();
    let inside = links.filter(|(_, link)| !link.contains("://")).count();
    assert!(inside > 50, "only {inside} links were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_has_an_anchor_and_stands_in_the_table_of_proofs() {
    let pages = pages();
    let page = |name: &str| &pages[&root().join("docs").join(name)];
    let is_rule = |anchor: &&String| matches!(anchor.as_bytes(), [b'c' | b's' | b'k' | b'f' | b'p', number] if number.is_ascii_digit());
    let rules: BTreeSet<_> = page("contract.md")
        .anchors
        .iter()
        .filter(is_rule)
        .cloned()
        .collect();
    let proved: BTreeSet<_> = (page("guarantees.md").links.iter())
        .filter_map(|link| link.strip_prefix("contract.md#"))
        .map(str::to_owned)
        .collect();
    assert_eq!(rules.len(), 22, "{rules:?}");
    assert_eq!(rules, proved);
}

/// The files and folders that a page about the sources names, in code spans and in pictures. `{a,b}` is either.
fn named_paths(markdown: &str) -> Vec<(Option<String>, String)> {
    let mut paths = Vec::new();
    let mut room = None;
    for line in markdown.lines() {
        if line.starts_with("## ") {
            room = None;
        }
        if let Some(rest) = line.strip_prefix("**`src/") {
            room = rest.split('`').next().map(str::to_owned);
        }
        let is_path = |word: &&str| word.contains('/') || word.ends_with(".rs");
        let is_in_path =
            |letter: char| letter.is_ascii_alphanumeric() || "/._-{},".contains(letter);
        for word in line.split(|letter| !is_in_path(letter)).filter(is_path) {
            let word = word.trim_end_matches([',', '.']);
            let is_file = [".rs", ".md", ".pyi", "/"]
                .iter()
                .any(|end| word.ends_with(end));
            if !is_file || word.starts_with('/') {
                continue;
            }
            match word.split_once('{').zip(word.split_once('}')) {
                Some(((before, _), (choices, after))) => {
                    let choices = choices.rsplit('{').next().unwrap_or_default().split(',');
                    paths.extend(
                        choices.map(|choice| (room.clone(), format!("{before}{choice}{after}"))),
                    );
                }
                None => paths.push((room.clone(), word.to_owned())),
            }
        }
    }
    paths
}

#[test]
fn the_page_about_the_sources_names_what_is_there() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let paths = named_paths(&page);
    let is_there = |(room, path): &&(Option<String>, String)| {
        let beside = ["", "docs", "src"].map(str::to_owned).into_iter();
        let mut folders = beside.chain(room.iter().map(|room| format!("src/{room}")));
        folders.any(|folder| root().join(folder).join(path).exists())
    };
    let gone: Vec<_> = paths.iter().filter(|path| !is_there(path)).collect();
    assert!(paths.len() > 150, "only {} paths were found", paths.len());
    assert!(gone.is_empty(), "{gone:?}");
}

#[test]
fn the_page_about_the_sources_names_every_file_of_the_library() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let named: BTreeSet<_> = (named_paths(&page).into_iter())
        .map(|(room, path)| root().join("src").join(room.unwrap_or_default()).join(path))
        .collect();
    let mut folders = vec![root().join("src")];
    let mut unnamed = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_room = path.parent() == Some(&root().join("src"));
            let is_known = named.contains(&path)
                || ["mod.rs", "lib.rs"].iter().any(|name| path.ends_with(name));
            // A room is named file by file, a folder in it may be named as a whole.
            if path.is_dir() && (is_room || !is_known) {
                folders.push(path);
            } else if !is_known {
                unnamed.push(path);
            }
        }
    }
    assert!(unnamed.is_empty(), "{unnamed:?}");
}

#[test]
fn broken_links_are_found() {
    let from = root().join("docs/contract.md");
    let page =
        Page::read("# A `Head`, twice\n# A head, twice\n<a id=\"x1\"></a>\n```\n[no](link)\n```\n");
    let anchors: Vec<_> = page.anchors.iter().map(String::as_str).collect();
    assert_eq!(anchors, ["a-head-twice", "a-head-twice-1", "x1"]);
    assert!(page.links.is_empty());
    let pages = BTreeMap::from([(from.clone(), page)]);
    assert_eq!(broken(&pages, &from, "#x1"), None);
    assert_eq!(broken(&pages, &from, "../README.md"), None);
    assert_eq!(broken(&pages, &from, "https://example.org/x"), None);
    assert!(broken(&pages, &from, "#x2").is_some());
    assert!(broken(&pages, &from, "nowhere.md").is_some());
    assert!(broken(&pages, &from, "../../../etc/passwd").is_some());
    assert!(broken(&pages, &from, "../README.md#x").is_some());
}
