pub fn rope() {}
