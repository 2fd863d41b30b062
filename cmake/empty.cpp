// A shared library target needs at least one source; all code of liblamina comes from the static libraries.
