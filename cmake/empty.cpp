// A shared library target needs a source of its own; everything in liblamina comes from the modules.
