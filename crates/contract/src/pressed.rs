//! A contract file that was parsed when the program was built: its values in a row, each with its place in the text.
//!
//! Every command resolves the contract, so it must cost next to nothing; parsing a built-in profile's TOML was most of it. The row is
//! written by the build script of the crate that holds the profiles. A value is a tag, where it begins and ends in the text, and what it
//! holds; numbers are little-endian, `u32` unless said otherwise:
//!
//! `s` length, UTF-8 · `i` i64 · `f` f64 · `b` u8 · `a` count, values · `t` count, pairs of (length, UTF-8) and a value

use std::ops::Range;

use serde::de::value::{BorrowedStrDeserializer, Error};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_spanned::de::{SpannedDeserializer, is_spanned};

/// What a pressed file says.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let mut rest = Rest(bytes);
    T::deserialize(rest.value()?)
}

/// What has not been read yet.
struct Rest<'de>(&'de [u8]);

impl<'de> Rest<'de> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or_else(cut_off)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn number(&mut self) -> Result<usize, Error> {
        Ok(u32::from_le_bytes(self.take()?) as usize)
    }

    fn text(&mut self) -> Result<&'de str, Error> {
        let length = self.number()?;
        let (text, rest) = self.0.split_at_checked(length).ok_or_else(cut_off)?;
        self.0 = rest;
        std::str::from_utf8(text).map_err(Error::custom)
    }

    fn value(&mut self) -> Result<Value<'de, '_>, Error> {
        let [tag] = self.take()?;
        let span = self.number()?..self.number()?;
        Ok(Value { tag, span, rest: self })
    }
}

fn cut_off() -> Error {
    Error::custom("a pressed file that is cut off")
}

/// A value whose head was read.
struct Value<'de, 'r> {
    tag: u8,
    span: Range<usize>,
    rest: &'r mut Rest<'de>,
}

impl<'de> Deserializer<'de> for Value<'de, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.tag {
            b's' => visitor.visit_borrowed_str(self.rest.text()?),
            b'i' => visitor.visit_i64(i64::from_le_bytes(self.rest.take()?)),
            b'f' => visitor.visit_f64(f64::from_le_bytes(self.rest.take()?)),
            b'b' => visitor.visit_bool(self.rest.take::<1>()? == [1]),
            b'a' => visitor.visit_seq(Many { left: self.rest.number()?, rest: self.rest }),
            b't' => visitor.visit_map(Many { left: self.rest.number()?, rest: self.rest }),
            tag => Err(Error::custom(format!("a pressed file with a value of kind {tag}"))),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(self, name: &'static str, _: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
        match is_spanned(name) {
            true => visitor.visit_map(SpannedDeserializer::new(Value { span: self.span.clone(), ..self }, self.span)),
            false => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(self, _: &'static str, _: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
        match self.tag {
            b't' => {
                self.rest.number()?;
                visitor.visit_enum(Variant { name: self.rest.text()?, rest: self.rest })
            }
            _ => visitor.visit_enum(self.rest.text()?.into_deserializer()),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, Error> for Value<'de, '_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The rest of an array or of a table.
struct Many<'de, 'r> {
    left: usize,
    rest: &'r mut Rest<'de>,
}

impl<'de> SeqAccess<'de> for Many<'de, '_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        seed.deserialize(self.rest.value()?).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> MapAccess<'de> for Many<'de, '_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        seed.deserialize(BorrowedStrDeserializer::new(self.rest.text()?)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(self.rest.value()?)
    }
}

/// A variant that holds something: a table of one pair.
struct Variant<'de, 'r> {
    name: &'de str,
    rest: &'r mut Rest<'de>,
}

impl<'de, 'r> EnumAccess<'de> for Variant<'de, 'r> {
    type Error = Error;
    type Variant = Value<'de, 'r>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Value<'de, 'r>), Error> {
        let name = seed.deserialize(BorrowedStrDeserializer::<Error>::new(self.name))?;
        Ok((name, self.rest.value()?))
    }
}

impl<'de> VariantAccess<'de> for Value<'de, '_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Err(Error::custom("a pressed file with a variant that holds nothing"))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }
}
