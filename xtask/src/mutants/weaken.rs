//! The memory orderings of a source file, and how each can be weakened.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeMap;
use std::ops::Range;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprCall, ExprMethodCall, ExprPath, Meta, Token};

/// An ordering that is stronger than Relaxed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// The function that it stands in.
    pub(super) function: String,
    /// Which of the orderings in this function it is. The first is 1.
    pub(super) nth: usize,
    /// What it orders, for people: `intent.load` or `fence`.
    pub(super) access: String,
    ordering: Ordering,
    kind: Kind,
    /// What to replace: the ordering's name, or the call that makes the fence.
    at: Range<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ordering {
    Acquire,
    Release,
    AcqRel,
    SeqCst,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Load,
    Store,
    /// It reads and writes, or it is not known what it does.
    Update,
    Fence,
}

/// A place, and what stands there instead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Weakening {
    pub(super) place: Place,
    weaker: &'static str,
}

impl Weakening {
    /// What it does: `Release -> Relaxed`.
    pub(super) fn change(&self) -> String {
        format!("{:?} -> {}", self.place.ordering, self.weaker)
    }

    /// The source with this one change.
    pub(super) fn apply(&self, source: &str) -> String {
        let is_removed = self.weaker == NO_FENCE;
        let weaker = if is_removed { "()" } else { self.weaker };
        let mut changed = source.to_owned();
        changed.replace_range(self.place.at.clone(), weaker);
        changed
    }
}

const NO_FENCE: &str = "none";

/// Every way to weaken one ordering of this source by one step, in the order of the source. Code that is
/// compiled for tests or for models only is left out.
pub(super) fn weakenings(source: &str) -> syn::Result<Vec<Weakening>> {
    let mut finder = Finder::default();
    finder.visit_file(&syn::parse_file(source)?);
    finder.found.sort_by_key(|place| place.at.start);
    let mut counts = BTreeMap::new();
    for place in &mut finder.found {
        let count = counts.entry(place.function.clone()).or_insert(0);
        *count += 1;
        place.nth = *count;
    }
    let weakened = |place: Place| {
        let to = weaker(place.ordering, place.kind).iter();
        to.map(move |weaker| Weakening {
            place: place.clone(),
            weaker,
        })
    };
    Ok(finder.found.into_iter().flat_map(weakened).collect())
}

/// The next weaker orderings.
fn weaker(ordering: Ordering, kind: Kind) -> &'static [&'static str] {
    match (ordering, kind) {
        (Ordering::Acquire | Ordering::Release, Kind::Fence) => &[NO_FENCE],
        (Ordering::Acquire | Ordering::Release, _) => &["Relaxed"],
        (Ordering::AcqRel, _) => &["Acquire", "Release"],
        (Ordering::SeqCst, Kind::Load) => &["Acquire"],
        (Ordering::SeqCst, Kind::Store) => &["Release"],
        (Ordering::SeqCst, Kind::Update | Kind::Fence) => &["AcqRel"],
    }
}

/// Collects the places.
#[derive(Default)]
struct Finder {
    found: Vec<Place>,
    /// The functions around the present place, from the outermost.
    functions: Vec<String>,
}

impl Finder {
    fn within(&mut self, function: &syn::Ident, visit: impl FnOnce(&mut Self)) {
        self.functions.push(function.to_string());
        visit(self);
        self.functions.pop();
    }

    /// The name of an ordering at this place is one that is stronger than Relaxed.
    fn found(&mut self, ordering: Ordering, kind: Kind, access: &str, at: Range<usize>) {
        self.found.push(Place {
            function: self.functions.last().cloned().unwrap_or_default(),
            nth: 0,
            access: access.to_owned(),
            ordering,
            kind,
            at,
        });
    }

    /// The argument of a call is an ordering of this kind, or some other expression.
    fn argument(&mut self, argument: &Expr, kind: Kind, access: &str) {
        match (argument, ordering_of(argument)) {
            (Expr::Path(path), Some(ordering)) => {
                self.found(ordering, kind, access, name_of(path));
            }
            _ => self.visit_expr(argument),
        }
    }

    /// Looks for names in what is not parsed: the arguments of a macro.
    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(name) => {
                    if let Some(ordering) = named(&name.to_string()) {
                        let at = name.span().byte_range();
                        self.found(ordering, Kind::Update, "a macro", at);
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if ships(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_impl(&mut self, implementation: &'ast syn::ItemImpl) {
        if ships(&implementation.attrs) {
            visit::visit_item_impl(self, implementation);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if ships(&function.attrs) {
            let visit = |finder: &mut Self| visit::visit_item_fn(finder, function);
            self.within(&function.sig.ident, visit);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if ships(&function.attrs) {
            let visit = |finder: &mut Self| visit::visit_impl_item_fn(finder, function);
            self.within(&function.sig.ident, visit);
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if ships(&function.attrs) {
            let visit = |finder: &mut Self| visit::visit_trait_item_fn(finder, function);
            self.within(&function.sig.ident, visit);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.visit_expr(&call.receiver);
        let method = call.method.to_string();
        let access = format!("{}.{method}", word_of(&call.receiver));
        for (index, argument) in call.args.iter().enumerate() {
            let kind = match method.as_str() {
                "load" => Kind::Load,
                "store" => Kind::Store,
                // The ordering of a failure is that of a load.
                "compare_exchange" | "compare_exchange_weak" if index == 3 => Kind::Load,
                _ => Kind::Update,
            };
            self.argument(argument, kind, &access);
        }
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        let ordering = match (&*call.func, call.args.first()) {
            (Expr::Path(path), Some(argument)) if path.path.is_ident("fence") => {
                ordering_of(argument).zip(Some(argument))
            }
            _ => None,
        };
        match ordering {
            None => visit::visit_expr_call(self, call),
            Some((ordering @ (Ordering::Acquire | Ordering::Release), _)) => {
                let at = syn::spanned::Spanned::span(call).byte_range();
                self.found(ordering, Kind::Fence, "fence", at);
            }
            Some((_, argument)) => self.argument(argument, Kind::Fence, "fence"),
        }
    }

    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        if let Some(ordering) = last_name(path).and_then(|name| named(&name.to_string())) {
            self.found(ordering, Kind::Update, "?", name_of(path));
        }
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone());
    }
}

fn named(name: &str) -> Option<Ordering> {
    match name {
        "Acquire" => Some(Ordering::Acquire),
        "Release" => Some(Ordering::Release),
        "AcqRel" => Some(Ordering::AcqRel),
        "SeqCst" => Some(Ordering::SeqCst),
        _ => None,
    }
}

fn last_name(path: &ExprPath) -> Option<&syn::Ident> {
    path.path.segments.last().map(|segment| &segment.ident)
}

fn name_of(path: &ExprPath) -> Range<usize> {
    last_name(path).map_or(0..0, |name| name.span().byte_range())
}

fn ordering_of(argument: &Expr) -> Option<Ordering> {
    match argument {
        Expr::Path(path) => named(&last_name(path)?.to_string()),
        _ => None,
    }
}

/// What an expression ends in: the field or the variable that is accessed.
fn word_of(receiver: &Expr) -> String {
    match receiver {
        Expr::Field(field) => match &field.member {
            syn::Member::Named(name) => name.to_string(),
            syn::Member::Unnamed(_) => word_of(&field.base),
        },
        Expr::Index(index) => word_of(&index.expr),
        Expr::Paren(inner) => word_of(&inner.expr),
        Expr::Path(path) => last_name(path).map_or_else(String::new, ToString::to_string),
        Expr::MethodCall(call) => call.method.to_string(),
        _ => String::new(),
    }
}

/// Whether an item with these attributes is in the library that users get.
fn ships(attributes: &[Attribute]) -> bool {
    let conditions = attributes.iter().filter(|a| a.path().is_ident("cfg"));
    !(conditions.filter_map(|a| a.parse_args::<Meta>().ok())).any(|meta| is_for_tests(&meta))
}

/// Whether a condition holds in tests or models only.
fn is_for_tests(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test") || path.is_ident("loom"),
        Meta::List(list) => {
            let parts = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
            let parts = parts.unwrap_or_default();
            match () {
                () if list.path.is_ident("all") => parts.iter().any(is_for_tests),
                () if list.path.is_ident("any") => parts.iter().all(is_for_tests),
                () => false,
            }
        }
        Meta::NameValue(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "
        // Ordering::Acquire
        fn first(a: &A) -> u64 {
            fence(Ordering::Release);
            fence(Ordering::SeqCst);
            let again = |b: &A| b.words[3].swap(1, Ordering::AcqRel);
            assert_eq!(a.x.load(Ordering::Acquire), 0);
            (a.x).load(Ordering::Relaxed) + again(a)
        }
        #[cfg(not(loom))]
        impl A {
            fn second(&self) {
                self.y.store(1, core::sync::atomic::Ordering::SeqCst);
                let _ = self.z.compare_exchange(1, 2, Ordering::SeqCst, Ordering::SeqCst);
                let other = Ordering::Release;
            }
            #[cfg(loom)]
            fn third(&self) {
                self.y.store(1, Ordering::Release);
            }
        }
        #[cfg(all(test, not(loom)))]
        mod tests {
            fn fourth(a: &A) { a.x.load(Ordering::Acquire); }
        }";

    fn all(source: &str) -> Vec<(String, usize, String, String)> {
        let found = weakenings(source).unwrap();
        let shown = |found: Weakening| {
            let change = found.change();
            let place = found.place;
            (place.function, place.nth, place.access, change)
        };
        found.into_iter().map(shown).collect()
    }

    #[test]
    fn every_ordering_that_ships_is_weakened() {
        let expected = [
            ("first", 1, "fence", "Release -> none"),
            ("first", 2, "fence", "SeqCst -> AcqRel"),
            ("first", 3, "words.swap", "AcqRel -> Acquire"),
            ("first", 3, "words.swap", "AcqRel -> Release"),
            ("first", 4, "a macro", "Acquire -> Relaxed"),
            ("second", 1, "y.store", "SeqCst -> Release"),
            ("second", 2, "z.compare_exchange", "SeqCst -> AcqRel"),
            ("second", 3, "z.compare_exchange", "SeqCst -> Acquire"),
            ("second", 4, "?", "Release -> Relaxed"),
        ];
        let expected = expected.map(|(function, nth, access, change)| {
            (
                function.to_owned(),
                nth,
                access.to_owned(),
                change.to_owned(),
            )
        });
        assert_eq!(all(SOURCE), expected);
    }

    #[test]
    fn a_weakening_changes_one_ordering_and_nothing_else() {
        let found = weakenings(SOURCE).unwrap();
        let changed = |index: usize| found[index].apply(SOURCE);
        let replaced = |from: &str, to: &str| SOURCE.replacen(from, to, 1);
        assert_eq!(changed(0), replaced("fence(Ordering::Release)", "()"));
        assert_eq!(
            changed(1),
            replaced("fence(Ordering::SeqCst)", "fence(Ordering::AcqRel)")
        );
        assert_eq!(
            changed(3),
            replaced("Ordering::AcqRel", "Ordering::Release")
        );
        assert_eq!(
            changed(4),
            replaced("x.load(Ordering::Acquire)", "x.load(Ordering::Relaxed)")
        );
    }
}
