//! How the program is linked, and what it is made of beside code.

fn main() {
    // A file that is added to the page is part of the program: the compiler alone would not notice
    // it.
    println!("cargo:rerun-if-changed=../../page/www");

    // At a fixed address nothing has to be relocated when the program starts.
    let is = |key: &str, value: &str| std::env::var(key).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo:rustc-link-arg-bin=quipu=-no-pie");
    }
}
