//! Rebuilds the program when a file is added to the page: the compiler alone would not notice it.

fn main() {
    println!("cargo:rerun-if-changed=../../page/www");
}
