pub fn tie() {}

pub fn untie() {}
