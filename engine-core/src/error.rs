//! Errors that more than one module of the library raises.
