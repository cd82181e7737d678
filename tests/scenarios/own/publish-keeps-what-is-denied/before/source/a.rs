fn knot() {}
