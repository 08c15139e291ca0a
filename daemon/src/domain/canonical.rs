//! Canonical bytes and digests. (helper D fills this room)
