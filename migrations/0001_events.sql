-- One history: every change is an event, numbered without gaps, holding the hash of the one before.
-- SQLite cannot compute SHA-256, so the store computes the hashes and `verify` recomputes them; what
-- can be held here is that the chain only grows at its end.

CREATE TABLE events (
    seq       INTEGER NOT NULL PRIMARY KEY CHECK (seq >= 1),
    at        INTEGER NOT NULL,                       -- microseconds since 1970, UTC
    kind      TEXT    NOT NULL CHECK (kind <> ''),
    subject   TEXT    NOT NULL CHECK (subject <> ''),
    run_id    TEXT,
    body      TEXT    NOT NULL CHECK (json_valid(body)),
    prev_hash TEXT    NOT NULL CHECK (length(prev_hash) = 64 AND prev_hash NOT GLOB '*[^0-9a-f]*'),
    hash      TEXT    NOT NULL CHECK (length(hash) = 64 AND hash NOT GLOB '*[^0-9a-f]*')
) STRICT;

CREATE INDEX events_of_run ON events (run_id, seq) WHERE run_id IS NOT NULL;
CREATE INDEX events_of_subject ON events (subject, seq);

-- Where the chain ends. Kept apart from the events so that a tail cut off them is noticed.
CREATE TABLE event_head (
    only INTEGER NOT NULL PRIMARY KEY CHECK (only = 1),
    seq  INTEGER NOT NULL CHECK (seq >= 0),
    hash TEXT    NOT NULL CHECK (length(hash) = 64 AND hash NOT GLOB '*[^0-9a-f]*')
) STRICT;

INSERT INTO event_head (only, seq, hash)
VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');

CREATE TRIGGER events_insert_next_only BEFORE INSERT ON events
WHEN NEW.seq IS NOT (SELECT seq + 1 FROM event_head)
  OR NEW.prev_hash IS NOT (SELECT hash FROM event_head)
BEGIN
    SELECT RAISE(ABORT, 'event-chain: an event takes the next number and the hash of the one before');
END;

CREATE TRIGGER events_insert_moves_head AFTER INSERT ON events
BEGIN
    UPDATE event_head SET seq = NEW.seq, hash = NEW.hash;
END;

CREATE TRIGGER events_no_update BEFORE UPDATE ON events
BEGIN
    SELECT RAISE(ABORT, 'append-only: events never change');
END;

CREATE TRIGGER events_no_delete BEFORE DELETE ON events
BEGIN
    SELECT RAISE(ABORT, 'append-only: events are never deleted');
END;

CREATE TRIGGER event_head_grows_only BEFORE UPDATE ON event_head
WHEN NEW.only IS NOT OLD.only
  OR NEW.seq IS NOT OLD.seq + 1
  OR NOT EXISTS (SELECT 1 FROM events WHERE seq = NEW.seq AND hash = NEW.hash)
BEGIN
    SELECT RAISE(ABORT, 'event-chain: the head moves to the event just written and nowhere else');
END;

CREATE TRIGGER event_head_no_insert BEFORE INSERT ON event_head
BEGIN
    SELECT RAISE(ABORT, 'event-chain: there is one head');
END;

CREATE TRIGGER event_head_no_delete BEFORE DELETE ON event_head
BEGIN
    SELECT RAISE(ABORT, 'event-chain: the head is never deleted');
END;
