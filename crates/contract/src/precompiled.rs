//! Precompiled profiles: reads the row of values that `precompile.rs` writes into the types of
//! `manifest.rs`.
//!
//! Every command resolves the contract. The build script parses the TOML of the built-in profiles
//! once; at run time only a project's own contract files are parsed. Both are read from rows, so
//! there is one reader.
//!
//! It is kept because users feel it: with the same profile as TOML in the project's folder, where it
//! is parsed at run time, `quipu contract show` takes 7.9 ms of CPU instead of 5.4 in a `book`
//! project (75 KB of TOML), and `quipu log` 8.8 instead of 5.2. In a `relay` and `worldlog` project
//! (33 KB) it takes 3.7 instead of 3.0.

use std::ops::Range;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer,
    MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_spanned::de::{SpannedDeserializer, is_spanned};

use crate::precompile::SyntaxError;

impl SyntaxError {
    /// Keeps the innermost span, which is the most precise.
    fn at(mut self, span: Range<usize>) -> SyntaxError {
        self.span.get_or_insert(span);
        self
    }
}

impl std::fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SyntaxError {}

impl serde::de::Error for SyntaxError {
    fn custom<T: std::fmt::Display>(message: T) -> SyntaxError {
        SyntaxError {
            message: message.to_string(),
            span: None,
        }
    }
}

/// Decodes an encoded file.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, SyntaxError> {
    let mut rest = Rest(bytes);
    T::deserialize(rest.value()?)
}

/// The undecoded bytes.
struct Rest<'de>(&'de [u8]);

impl<'de> Rest<'de> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], SyntaxError> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or_else(cut_off)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn number(&mut self) -> Result<usize, SyntaxError> {
        Ok(u32::from_le_bytes(self.take()?) as usize)
    }

    fn text(&mut self) -> Result<&'de str, SyntaxError> {
        let length = self.number()?;
        let (text, rest) = self.0.split_at_checked(length).ok_or_else(cut_off)?;
        self.0 = rest;
        std::str::from_utf8(text).map_err(SyntaxError::custom)
    }

    fn key(&mut self) -> Result<(&'de str, Range<usize>), SyntaxError> {
        let span = self.number()?..self.number()?;
        Ok((self.text()?, span))
    }

    fn value(&mut self) -> Result<Value<'de, '_>, SyntaxError> {
        let [tag] = self.take()?;
        let span = self.number()?..self.number()?;
        Ok(Value {
            tag,
            span,
            rest: self,
        })
    }
}

fn cut_off() -> SyntaxError {
    SyntaxError::custom("a precompiled file that is truncated")
}

/// A value with a decoded header.
struct Value<'de, 'r> {
    tag: u8,
    span: Range<usize>,
    rest: &'r mut Rest<'de>,
}

impl<'de> Deserializer<'de> for Value<'de, '_> {
    type Error = SyntaxError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SyntaxError> {
        let read = match self.tag {
            b's' => visitor.visit_borrowed_str(self.rest.text()?),
            b'i' => visitor.visit_i64(i64::from_le_bytes(self.rest.take()?)),
            b'f' => visitor.visit_f64(f64::from_le_bytes(self.rest.take()?)),
            b'b' => visitor.visit_bool(self.rest.take::<1>()? == [1]),
            b'a' => {
                let mut many = Many {
                    left: self.rest.number()?,
                    rest: self.rest,
                };
                visitor
                    .visit_seq(&mut many)
                    .and_then(|value| many.end().map(|()| value))
            }
            b't' => {
                let mut many = Many {
                    left: self.rest.number()?,
                    rest: self.rest,
                };
                visitor
                    .visit_map(&mut many)
                    .and_then(|value| many.end().map(|()| value))
            }
            tag => Err(SyntaxError::custom(format!(
                "a precompiled file with a value of kind {tag}"
            ))),
        };
        read.map_err(|error| error.at(self.span))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SyntaxError> {
        match is_spanned(name) {
            true => visitor.visit_map(SpannedDeserializer::new(
                Value {
                    span: self.span.clone(),
                    ..self
                },
                self.span,
            )),
            false => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SyntaxError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, SyntaxError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SyntaxError> {
        let read = match self.tag {
            b's' => visitor.visit_enum(self.rest.text()?.into_deserializer()),
            b't' => match self.rest.number()? {
                1 => {
                    let (name, _) = self.rest.key()?;
                    visitor.visit_enum(Variant {
                        name,
                        rest: self.rest,
                    })
                }
                0 => Err(SyntaxError::custom(
                    "wanted exactly 1 element, found 0 elements",
                )),
                _ => Err(SyntaxError::custom(
                    "wanted exactly 1 element, more than 1 element",
                )),
            },
            _ => Err(SyntaxError::custom("wanted string or table")),
        };
        read.map_err(|error| error.at(self.span))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, SyntaxError> for Value<'de, '_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The remaining elements of an array or a table.
struct Many<'de, 'r> {
    left: usize,
    rest: &'r mut Rest<'de>,
}

impl Many<'_, '_> {
    /// Checks that every element was read; otherwise the decoder would misread the following bytes.
    fn end(&self) -> Result<(), SyntaxError> {
        match self.left {
            0 => Ok(()),
            left => Err(SyntaxError::custom(format!(
                "more values than this key takes: {left} too many"
            ))),
        }
    }
}

impl<'de> SeqAccess<'de> for Many<'de, '_> {
    type Error = SyntaxError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, SyntaxError> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        seed.deserialize(self.rest.value()?).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> MapAccess<'de> for Many<'de, '_> {
    type Error = SyntaxError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, SyntaxError> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        let (key, span) = self.rest.key()?;
        seed.deserialize(BorrowedStrDeserializer::new(key))
            .map(Some)
            .map_err(|error: SyntaxError| error.at(span))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, SyntaxError> {
        seed.deserialize(self.rest.value()?)
    }
}

/// An enum variant with content: a table of one pair.
struct Variant<'de, 'r> {
    name: &'de str,
    rest: &'r mut Rest<'de>,
}

impl<'de, 'r> EnumAccess<'de> for Variant<'de, 'r> {
    type Error = SyntaxError;
    type Variant = Value<'de, 'r>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Value<'de, 'r>), SyntaxError> {
        let name = seed.deserialize(BorrowedStrDeserializer::<SyntaxError>::new(self.name))?;
        Ok((name, self.rest.value()?))
    }
}

impl<'de> VariantAccess<'de> for Value<'de, '_> {
    type Error = SyntaxError;

    fn unit_variant(self) -> Result<(), SyntaxError> {
        Err(SyntaxError::custom(
            "a precompiled file with a variant without a value",
        ))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<S::Value, SyntaxError> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, SyntaxError> {
        self.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SyntaxError> {
        self.deserialize_any(visitor)
    }
}

#[cfg(test)]
mod tests {
    use crate::manifest::Manifest;
    use crate::precompile::precompile;

    fn fault(text: &str) -> (String, String) {
        let error = precompile(text)
            .and_then(|row| super::read::<Manifest>(&row))
            .unwrap_err();
        let span = error.span.unwrap();
        (error.message, text[span].to_owned())
    }

    /// Returns the message of the `toml` crate, as the reference for error texts.
    fn as_toml_says(text: &str) -> (String, String) {
        let error = toml::from_str::<Manifest>(text).unwrap_err();
        (
            error.message().to_owned(),
            text[error.span().unwrap()].to_owned(),
        )
    }

    #[test]
    fn a_fault_has_its_words_and_its_place() {
        for text in [
            "quipu = 1\nprofilez = []\n",
            "quipu = \"one\"\n",
            "quipu = -1\n",
            "quipu = 1\nlanguage = \"de\"\n",
            "quipu = 1\n[[files]]\npath = \"a.md\"\nclass = \"sealed\"\nkind = 1\n",
            "quipu = 1\n[units.ch01]\ntitel = \"x\"\n",
            "quipu = 1\n[hooks]\nfail = 3\n",
            "quipu = 1\nquipu = 2\n",
            "quipu = 1\n[vars\n",
        ] {
            assert_eq!(fault(text), as_toml_says(text), "{text}");
        }
        assert_eq!(
            fault("quipu = 1\n[vars]\nday = 2026-01-01\n").1,
            "2026-01-01"
        );
        assert_eq!(
            fault("quipu = 99999999999999999999\n").1,
            "99999999999999999999"
        );
        let too_much = "quipu = 1\nhooks = [\"closed\", \"x\"]\nlanguage = \"en\"\n";
        assert_eq!(
            fault(too_much),
            (
                "more values than this key takes: 1 too many".to_owned(),
                "[\"closed\", \"x\"]".to_owned()
            )
        );
    }
}
