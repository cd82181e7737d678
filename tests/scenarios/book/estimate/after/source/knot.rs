pub fn tie() {}
