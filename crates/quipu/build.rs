//! A file that is added to the page is part of the program: the compiler alone would not notice it.

fn main() {
    println!("cargo:rerun-if-changed=../../page/www");
}
