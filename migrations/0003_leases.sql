-- Seed leases. Half-open ranges of one space and domain never overlap, whatever their role, unless
-- one of them is cancelled; ranges that no protocol may lease are rows of their own.

CREATE TABLE blocked_ranges (
    space         TEXT    NOT NULL,
    domain        TEXT    NOT NULL,
    start         INTEGER NOT NULL CHECK (start >= 0),
    end_exclusive INTEGER NOT NULL CHECK (end_exclusive <= 4294967296),
    name          TEXT    NOT NULL CHECK (name <> ''),
    reason        TEXT    NOT NULL CHECK (reason <> ''),
    PRIMARY KEY (space, domain, start),
    CHECK (start < end_exclusive)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER blocked_ranges_insert_disjoint BEFORE INSERT ON blocked_ranges
WHEN EXISTS (SELECT 1 FROM blocked_ranges
             WHERE space = NEW.space AND domain = NEW.domain
               AND start < NEW.end_exclusive AND NEW.start < end_exclusive)
  OR EXISTS (SELECT 1 FROM leases
             WHERE space = NEW.space AND domain = NEW.domain AND state <> 'cancelled'
               AND start < NEW.end_exclusive AND NEW.start < end_exclusive)
BEGIN
    SELECT RAISE(ABORT, 'lease-overlap: the range to block is blocked or leased in part');
END;

CREATE TRIGGER blocked_ranges_no_update BEFORE UPDATE ON blocked_ranges
BEGIN
    SELECT RAISE(ABORT, 'append-only: blocked ranges never change');
END;

CREATE TRIGGER blocked_ranges_no_delete BEFORE DELETE ON blocked_ranges
BEGIN
    SELECT RAISE(ABORT, 'append-only: blocked ranges are never given back');
END;

CREATE TABLE leases (
    id               TEXT    NOT NULL PRIMARY KEY CHECK (id GLOB 'SL-*'),
    experiment_id    TEXT    NOT NULL REFERENCES experiments (id),
    name             TEXT    NOT NULL CHECK (name <> ''),
    space            TEXT    NOT NULL CHECK (space <> ''),
    domain           TEXT    NOT NULL CHECK (domain <> ''),
    role             TEXT    NOT NULL CHECK (role IN ('training', 'validation', 'held-out')),
    start            INTEGER NOT NULL CHECK (start >= 0),
    end_exclusive    INTEGER NOT NULL CHECK (end_exclusive <= 4294967296),
    state            TEXT    NOT NULL CHECK (state IN ('reserved', 'opened', 'cancelled')),
    reserved_at      INTEGER NOT NULL,
    cancelled_at     INTEGER,
    cancelled_reason TEXT,
    CHECK (start < end_exclusive),
    CHECK ((state = 'cancelled') = (cancelled_at IS NOT NULL)),
    CHECK ((state = 'cancelled') = (cancelled_reason IS NOT NULL)),
    CHECK (cancelled_reason IS NOT '')
) STRICT, WITHOUT ROWID;

CREATE INDEX leases_by_range ON leases (space, domain, start, end_exclusive);
CREATE INDEX leases_of_experiment ON leases (experiment_id);

CREATE TRIGGER leases_insert_once BEFORE INSERT ON leases
WHEN EXISTS (SELECT 1 FROM leases WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'append-only: this lease is on record');
END;

CREATE TRIGGER leases_insert_reserved BEFORE INSERT ON leases
WHEN NEW.state <> 'reserved'
BEGIN
    SELECT RAISE(ABORT, 'transition: a lease begins reserved');
END;

CREATE TRIGGER leases_insert_disjoint BEFORE INSERT ON leases
WHEN EXISTS (SELECT 1 FROM leases
             WHERE space = NEW.space AND domain = NEW.domain AND state <> 'cancelled'
               AND start < NEW.end_exclusive AND NEW.start < end_exclusive)
BEGIN
    SELECT RAISE(ABORT, 'lease-overlap: a lease that is not cancelled holds some of these seeds');
END;

CREATE TRIGGER leases_insert_not_blocked BEFORE INSERT ON leases
WHEN EXISTS (SELECT 1 FROM blocked_ranges
             WHERE space = NEW.space AND domain = NEW.domain
               AND start < NEW.end_exclusive AND NEW.start < end_exclusive)
BEGIN
    SELECT RAISE(ABORT, 'lease-overlap: some of these seeds are blocked');
END;

CREATE TRIGGER leases_identity BEFORE UPDATE ON leases
WHEN NEW.id IS NOT OLD.id OR NEW.experiment_id IS NOT OLD.experiment_id OR NEW.name IS NOT OLD.name
  OR NEW.space IS NOT OLD.space OR NEW.domain IS NOT OLD.domain OR NEW.role IS NOT OLD.role
  OR NEW.start IS NOT OLD.start OR NEW.end_exclusive IS NOT OLD.end_exclusive
  OR NEW.reserved_at IS NOT OLD.reserved_at
BEGIN
    SELECT RAISE(ABORT, 'append-only: whose seeds these are never changes');
END;

-- A lease is read once it is opened; neither that nor a cancellation is ever undone.
CREATE TRIGGER leases_transition BEFORE UPDATE ON leases
WHEN NOT (OLD.state = 'reserved' AND NEW.state IN ('opened', 'cancelled'))
BEGIN
    SELECT RAISE(ABORT, 'transition: a lease goes from reserved to opened or to cancelled, once');
END;

CREATE TRIGGER leases_opened_by_a_row BEFORE UPDATE ON leases
WHEN NEW.state = 'opened'
  AND NOT EXISTS (SELECT 1 FROM lease_openings WHERE lease_id = NEW.id)
  AND NOT (NEW.role <> 'held-out' AND EXISTS (SELECT 1 FROM lease_readings WHERE lease_id = NEW.id))
BEGIN
    SELECT RAISE(ABORT, 'transition: a lease is opened by the row that says who reads it');
END;

CREATE TRIGGER leases_no_delete BEFORE DELETE ON leases
BEGIN
    SELECT RAISE(ABORT, 'append-only: leases are cancelled, never deleted');
END;

-- Which lease an experiment means by the name of a block. A block that selects or trains may be read
-- again by a successor; a held-out block belongs to one experiment.
CREATE TABLE lease_uses (
    experiment_id TEXT    NOT NULL REFERENCES experiments (id),
    block         TEXT    NOT NULL CHECK (block <> ''),
    lease_id      TEXT    NOT NULL REFERENCES leases (id),
    PRIMARY KEY (experiment_id, block)
) STRICT, WITHOUT ROWID;

CREATE INDEX lease_uses_by_lease ON lease_uses (lease_id);

CREATE TRIGGER lease_uses_insert_once BEFORE INSERT ON lease_uses
WHEN EXISTS (SELECT 1 FROM lease_uses
             WHERE experiment_id = NEW.experiment_id AND block = NEW.block)
BEGIN
    SELECT RAISE(ABORT, 'append-only: this block has its lease');
END;

CREATE TRIGGER lease_uses_held_out_is_not_shared BEFORE INSERT ON lease_uses
WHEN EXISTS (SELECT 1 FROM leases
             WHERE id = NEW.lease_id AND role = 'held-out' AND experiment_id <> NEW.experiment_id)
BEGIN
    SELECT RAISE(ABORT, 'lease-overlap: a held-out block belongs to one experiment');
END;

CREATE TRIGGER lease_uses_no_update BEFORE UPDATE ON lease_uses
BEGIN
    SELECT RAISE(ABORT, 'append-only: the lease of a block never changes');
END;

CREATE TRIGGER lease_uses_no_delete BEFORE DELETE ON lease_uses
BEGIN
    SELECT RAISE(ABORT, 'append-only: the lease of a block never changes');
END;

-- The one opening of a held-out lease, written before its first seed is derived.
CREATE TABLE lease_openings (
    lease_id        TEXT    NOT NULL PRIMARY KEY REFERENCES leases (id),
    run_id          TEXT    NOT NULL REFERENCES runs (id),
    protocol_sha256 TEXT    NOT NULL,
    tables          TEXT    NOT NULL CHECK (json_type(tables) = 'array'),
    opened_at       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX lease_openings_of_run ON lease_openings (run_id);

CREATE TRIGGER lease_openings_insert_once BEFORE INSERT ON lease_openings
WHEN EXISTS (SELECT 1 FROM lease_openings WHERE lease_id = NEW.lease_id)
BEGIN
    SELECT RAISE(ABORT, 'already-opened: a held-out block is opened once');
END;

CREATE TRIGGER lease_openings_insert_reserved BEFORE INSERT ON lease_openings
WHEN NOT EXISTS (SELECT 1 FROM leases
                 WHERE id = NEW.lease_id AND role = 'held-out' AND state = 'reserved')
 AND NOT EXISTS (SELECT 1 FROM lease_openings WHERE lease_id = NEW.lease_id)
BEGIN
    SELECT RAISE(ABORT, 'transition: only a reserved held-out lease can be opened');
END;

CREATE TRIGGER lease_openings_insert_own_run BEFORE INSERT ON lease_openings
WHEN NOT EXISTS (SELECT 1 FROM runs AS r
                 JOIN experiments AS e ON e.id = r.experiment_id
                 JOIN leases AS l ON l.experiment_id = e.id
                 WHERE r.id = NEW.run_id AND l.id = NEW.lease_id
                   AND r.protocol_sha256 = NEW.protocol_sha256
                   AND e.protocol_sha256 = NEW.protocol_sha256
                   AND e.withdrawn_at IS NULL
                   AND (r.origin = 'imported' OR r.state = 'running'))
BEGIN
    SELECT RAISE(ABORT, 'transition: a lease is opened by a running run of its own experiment under the frozen protocol');
END;

CREATE TRIGGER lease_openings_insert_tables_stored BEFORE INSERT ON lease_openings
WHEN EXISTS (SELECT 1 FROM runs WHERE id = NEW.run_id AND origin = 'own')
 AND EXISTS (SELECT 1 FROM json_each(NEW.tables) AS t
             WHERE json_extract(t.value, '$.sha256') IS NULL
                OR json_extract(t.value, '$.sha256') NOT IN (SELECT sha256 FROM artifacts))
BEGIN
    SELECT RAISE(ABORT, 'missing-table: a table that the screen will play is not stored');
END;

CREATE TRIGGER lease_openings_insert_after_earlier_stages BEFORE INSERT ON lease_openings
WHEN EXISTS (SELECT 1 FROM units
             WHERE run_id = NEW.run_id AND stage NOT IN ('screen', 'analyse')
               AND state NOT IN ('succeeded', 'skipped'))
BEGIN
    SELECT RAISE(ABORT, 'transition: checks, training and freezing come before the opening');
END;

CREATE TRIGGER lease_openings_insert_opens AFTER INSERT ON lease_openings
BEGIN
    UPDATE leases SET state = 'opened' WHERE id = NEW.lease_id;
END;

CREATE TRIGGER lease_openings_no_update BEFORE UPDATE ON lease_openings
BEGIN
    SELECT RAISE(ABORT, 'already-opened: an opening never changes');
END;

CREATE TRIGGER lease_openings_no_delete BEFORE DELETE ON lease_openings
BEGIN
    SELECT RAISE(ABORT, 'already-opened: an opening is never taken back');
END;

-- How far a run has read a training or validation lease, per unit of work.
CREATE TABLE lease_readings (
    lease_id   TEXT    NOT NULL REFERENCES leases (id),
    run_id     TEXT    NOT NULL REFERENCES runs (id),
    unit       TEXT    NOT NULL CHECK (unit <> ''),
    cursor     INTEGER NOT NULL CHECK (cursor >= 0),  -- seeds read since the last wrap
    wraps      INTEGER NOT NULL CHECK (wraps >= 0),
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (lease_id, run_id, unit)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER lease_readings_insert_once BEFORE INSERT ON lease_readings
WHEN EXISTS (SELECT 1 FROM lease_readings
             WHERE lease_id = NEW.lease_id AND run_id = NEW.run_id AND unit = NEW.unit)
BEGIN
    SELECT RAISE(ABORT, 'append-only: this reading is on record');
END;

CREATE TRIGGER lease_readings_insert_allowed BEFORE INSERT ON lease_readings
WHEN NOT EXISTS (SELECT 1 FROM leases AS l
                 JOIN lease_uses AS u ON u.lease_id = l.id
                 JOIN runs AS r ON r.experiment_id = u.experiment_id
                 WHERE l.id = NEW.lease_id AND r.id = NEW.run_id
                   AND l.role IN ('training', 'validation') AND l.state <> 'cancelled')
BEGIN
    SELECT RAISE(ABORT, 'transition: a run reads the training and validation leases of its own experiment');
END;

CREATE TRIGGER lease_readings_insert_opens AFTER INSERT ON lease_readings
WHEN EXISTS (SELECT 1 FROM leases WHERE id = NEW.lease_id AND state = 'reserved')
BEGIN
    UPDATE leases SET state = 'opened' WHERE id = NEW.lease_id;
END;

CREATE TRIGGER lease_readings_grow_only BEFORE UPDATE ON lease_readings
WHEN NEW.lease_id IS NOT OLD.lease_id OR NEW.run_id IS NOT OLD.run_id OR NEW.unit IS NOT OLD.unit
  OR NEW.wraps < OLD.wraps OR (NEW.wraps = OLD.wraps AND NEW.cursor < OLD.cursor)
BEGIN
    SELECT RAISE(ABORT, 'append-only: what was read stays read');
END;

CREATE TRIGGER lease_readings_no_delete BEFORE DELETE ON lease_readings
BEGIN
    SELECT RAISE(ABORT, 'append-only: what was read stays read');
END;

INSERT INTO blocked_ranges (space, domain, start, end_exclusive, name, reason) VALUES
    ('drop7-headless-u32', 'environment', 0x7d000000, 0x7d010000, 'protected',
     'protected validation games of the origin programme'),
    ('drop7-headless-u32', 'environment', 0xd7000000, 0xd7000100, 'final',
     'final confirmation games of the origin programme'),
    ('drop7-headless-u32', 'environment', 0xa5276000, 0xa5278000, 'probe',
     'open block that CHECK gates and smoke runs read');
