//! Compiles this package, and no other, with `cfg(loom)`.

fn main() {
    println!("cargo::rustc-cfg=loom");
}
