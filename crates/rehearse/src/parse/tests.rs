use super::*;

/// One line an item: place, kind, name, visibility, signature, members and calls.
fn listed(language: SourceLanguage, text: &str) -> (Vec<String>, bool) {
    let module = module("a", language, text);
    let line = |item: &Item| {
        let public = if item.public { "+" } else { "-" };
        let place = format!("{}-{}", item.line, item.end);
        let rest = [item.members.join(" | "), item.calls.join(" ")].join(" / ");
        let name = item.full_name();
        format!(
            "{place} {public}{name}: {} [{}] {rest}",
            item.signature, item.doc
        )
    };
    (module.items.iter().map(line).collect(), module.broken)
}

#[test]
fn rust_items_are_found() {
    let text = r##"
/// A pair.
#[derive(Debug)]
pub struct Pair<K, V>
where
    K: Ord,
{
    /// The key.
    #[serde(default)]
    pub key: HashMap<K, V>, // a, b
    f: fn(u8) -> u8,
}
pub(crate) struct Id(u64);
enum Bits { A = 1 << 2, B { x: u8, y: u8 } }
const TEXT: &str = "}{ fn no() {";
const RAW: &str = r#"" fn no() { "#;
impl<K: Fn(u8) -> u8, V> fmt::Display for Pair<K, V> where V: Ord {
    fn fmt(&self) -> [u8; 2] { let c = '{'; self.helper(other::<u8>(1)); write!(f, "{}", inner()) }
}
impl<'a> Pair<'a> { pub const unsafe fn new() -> Self { if cond(1) { new() } else { Some(1) } } }
macro_rules! m { () => { fn no() {} } }
mod inner { pub fn seen() {} }
#[cfg(test)]
mod tests { fn no() {} }
trait T { fn a(&self); }
use a::{b, c};
"##;
    let (items, broken) = listed(SourceLanguage::Rust, text);
    insta::assert_snapshot!(items.join("\n"));
    assert!(!broken);
}

#[test]
fn python_items_are_found() {
    let text = r##"
@decorated(lambda x: x)
async def run(
    a: dict[str, int] = {},
    *, b=(1, 2),
) -> None:  # a note
    r"""Runs
    it."""
    if a:
        await first(a)
    text = "def no():"

    return second(b)

class Outer(Base):
    """An outer class."""
    class Inner:
        def deep(self): return 1
    x = 1
    def _hidden(self):
        def local():
            pass
        local()
    def __init__(self): pass
if True:
    def skipped(): pass
"##;
    let (items, broken) = listed(SourceLanguage::Python, text);
    insta::assert_snapshot!(items.join("\n"));
    assert!(!broken);
}

#[test]
fn script_items_are_found() {
    let text = r##"
import { a } from "b"
/** Adds.
 * Two lines. */
export async function add<T>(a: { x: T }, b = {}): Promise<{ y: T }> {
  const quote = /[{"'`]/g, half = a / 2 / b
  return one(a, () => two(`${b} }`))
}
export default class Board<T> extends Base<T> implements Other {
  private readonly root: Map<string, T> = new Map()
  static count = 0;
  #secret = 1
  constructor(private readonly x: T) { super(); }
  /** Draws. */
  @logged("x") async draw(): Promise<void> { this.render({ a: 1 }) }
  private hide() { }
  get size() { return 1 }
}
interface Card { readonly unit: string; state?: T
  method(): void
  call: (a: number) => void }
type Shape = { kind: "a" } |
  { kind: "b" }
export const enum Colour { Red = 1 << 2, Green }
const render = (card: Card<string>): HTMLElement => {
  return element(card)
}, other = 1
const plain = 1
let short = x => twice(x)
const old = function named(a) { return a }
namespace Space { export function inner() {} }
call(function no() {})
"##;
    let (items, broken) = listed(SourceLanguage::Script, text);
    insta::assert_snapshot!(items.join("\n"));
    assert!(!broken);
}

#[test]
fn the_rest_of_a_broken_file_is_found() {
    let has = |items: &[String], name: &str| items.iter().any(|item| item.contains(name));
    let (items, broken) = listed(SourceLanguage::Rust, "fn a( {\nfn b() {}\n}\nfn c() {}");
    assert!(broken && has(&items, "-c:"), "{items:?}");
    let (items, broken) = listed(SourceLanguage::Python, "def a(:\n  1\ndef b(): pass\n'''");
    assert!(broken && has(&items, "+b:"), "{items:?}");
    assert!(listed(SourceLanguage::Script, "const a = `").1);
}

/// Repeats declarations without an end: the time must not grow with the square of the size.
#[test]
fn hostile_repetition_is_quick() {
    use SourceLanguage::{Python, Rust, Script};
    let parts = [
        (Rust, "impl a\n"),
        (Rust, "fn a <\n"),
        (Rust, "# [\n"),
        (Rust, "mod a {\n"),
        (Python, "def a(\n"),
        (Python, "class a:\n"),
        (Python, "class a: (\n"),
        (Script, "namespace x\n"),
        (Script, "const a = b :\n"),
        (Script, "class X\n"),
        (Script, "class A { a\n"),
        (Script, "function a */\n"),
        (Script, "type a\n"),
        (Script, "= /[\n"),
    ];
    for (language, part) in parts {
        let begun = std::time::Instant::now();
        module("a", language, &part.repeat(200_000 / part.len()));
        let seconds = begun.elapsed().as_secs_f32();
        assert!(seconds < 5.0, "{part} {language:?}: {seconds}");
    }
}
