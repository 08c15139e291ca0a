-- Theories, and experiments: one frozen protocol each. The bytes and their digest never change; the
-- only thing that may happen to an experiment afterwards is that it is withdrawn, once.
--
-- Tables with text keys are WITHOUT ROWID, so that INSERT OR REPLACE has no hidden key to collide on,
-- and every append-only table refuses an insert over an existing key before REPLACE gets to delete
-- anything: this holds even on a connection without recursive_triggers.

CREATE TABLE theories (
    id                     TEXT    NOT NULL PRIMARY KEY CHECK (id GLOB 'TH-*'),
    title                  TEXT    NOT NULL CHECK (title <> ''),
    claim                  TEXT    NOT NULL,
    mechanism              TEXT    NOT NULL,
    falsification_criteria TEXT    NOT NULL CHECK (json_type(falsification_criteria) = 'array'),
    origin                 TEXT    NOT NULL CHECK (origin IN ('own', 'imported')),
    created_at             INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER theories_insert_once BEFORE INSERT ON theories
WHEN EXISTS (SELECT 1 FROM theories WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'append-only: this theory is on record');
END;

CREATE TRIGGER theories_no_update BEFORE UPDATE ON theories
BEGIN
    SELECT RAISE(ABORT, 'append-only: theories never change');
END;

CREATE TRIGGER theories_no_delete BEFORE DELETE ON theories
BEGIN
    SELECT RAISE(ABORT, 'append-only: theories are never deleted');
END;

CREATE TABLE experiments (
    id                   TEXT    NOT NULL PRIMARY KEY CHECK (id GLOB 'EX-*'),
    theory_id            TEXT    NOT NULL REFERENCES theories (id),
    title                TEXT    NOT NULL CHECK (title <> ''),
    kind                 TEXT    NOT NULL CHECK (kind <> ''),
    tier                 TEXT    NOT NULL CHECK (tier <> ''),
    protocol             BLOB    NOT NULL CHECK (length(protocol) > 0),
    protocol_sha256      TEXT    NOT NULL CHECK (length(protocol_sha256) = 64
                                                 AND protocol_sha256 NOT GLOB '*[^0-9a-f]*'),
    predecessor_id       TEXT    REFERENCES experiments (id),
    predecessor_reason   TEXT,
    predecessor_was_open INTEGER CHECK (predecessor_was_open IN (0, 1)),
    is_repeat            INTEGER NOT NULL CHECK (is_repeat IN (0, 1)),
    engine               TEXT    NOT NULL CHECK (engine <> ''),
    origin               TEXT    NOT NULL CHECK (origin IN ('own', 'imported')),
    frozen_at            INTEGER NOT NULL,
    withdrawn_at         INTEGER,
    withdrawn_reason     TEXT,
    CHECK ((predecessor_id IS NULL) = (predecessor_reason IS NULL)),
    CHECK ((predecessor_id IS NULL) = (predecessor_was_open IS NULL)),
    CHECK (is_repeat = 0 OR predecessor_id IS NOT NULL),
    CHECK (predecessor_id IS NOT id),
    CHECK ((withdrawn_at IS NULL) = (withdrawn_reason IS NULL)),
    CHECK (withdrawn_reason IS NOT '')
) STRICT, WITHOUT ROWID;

-- Two requests that freeze the same protocol at once make one experiment.
CREATE UNIQUE INDEX experiments_one_living ON experiments (protocol_sha256)
WHERE withdrawn_at IS NULL AND is_repeat = 0;
CREATE INDEX experiments_by_time ON experiments (frozen_at, id);
CREATE INDEX experiments_by_predecessor ON experiments (predecessor_id) WHERE predecessor_id IS NOT NULL;

CREATE TRIGGER experiments_insert_once BEFORE INSERT ON experiments
WHEN EXISTS (SELECT 1 FROM experiments WHERE id = NEW.id)
  OR (NEW.is_repeat = 0 AND NEW.withdrawn_at IS NULL
      AND EXISTS (SELECT 1 FROM experiments
                  WHERE protocol_sha256 = NEW.protocol_sha256
                    AND is_repeat = 0 AND withdrawn_at IS NULL))
BEGIN
    SELECT RAISE(ABORT, 'frozen-protocol: this experiment or this protocol is frozen already');
END;

CREATE TRIGGER experiments_frozen BEFORE UPDATE ON experiments
WHEN NEW.id IS NOT OLD.id OR NEW.theory_id IS NOT OLD.theory_id OR NEW.title IS NOT OLD.title
  OR NEW.kind IS NOT OLD.kind OR NEW.tier IS NOT OLD.tier OR NEW.protocol IS NOT OLD.protocol
  OR NEW.protocol_sha256 IS NOT OLD.protocol_sha256
  OR NEW.predecessor_id IS NOT OLD.predecessor_id
  OR NEW.predecessor_reason IS NOT OLD.predecessor_reason
  OR NEW.predecessor_was_open IS NOT OLD.predecessor_was_open
  OR NEW.is_repeat IS NOT OLD.is_repeat OR NEW.engine IS NOT OLD.engine
  OR NEW.origin IS NOT OLD.origin OR NEW.frozen_at IS NOT OLD.frozen_at
BEGIN
    SELECT RAISE(ABORT, 'frozen-protocol: a frozen protocol never changes; amend it with a new experiment');
END;

CREATE TRIGGER experiments_withdrawn_once BEFORE UPDATE ON experiments
WHEN OLD.withdrawn_at IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'frozen-protocol: a withdrawal is final');
END;

CREATE TRIGGER experiments_no_delete BEFORE DELETE ON experiments
BEGIN
    SELECT RAISE(ABORT, 'frozen-protocol: experiments are withdrawn, never deleted');
END;

-- The arms of the held-out comparison, as the protocol plans them.
CREATE TABLE experiment_arms (
    experiment_id TEXT    NOT NULL REFERENCES experiments (id),
    arm           TEXT    NOT NULL CHECK (arm <> ''),
    position      INTEGER NOT NULL CHECK (position >= 0),
    games         INTEGER NOT NULL CHECK (games >= 1),
    block         TEXT    NOT NULL CHECK (block <> ''),
    PRIMARY KEY (experiment_id, arm)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER experiment_arms_insert_once BEFORE INSERT ON experiment_arms
WHEN EXISTS (SELECT 1 FROM experiment_arms
             WHERE experiment_id = NEW.experiment_id AND (arm = NEW.arm OR position = NEW.position))
  OR EXISTS (SELECT 1 FROM runs WHERE experiment_id = NEW.experiment_id)
BEGIN
    SELECT RAISE(ABORT, 'frozen-protocol: the arms of an experiment are fixed with its protocol');
END;

CREATE TRIGGER experiment_arms_no_update BEFORE UPDATE ON experiment_arms
BEGIN
    SELECT RAISE(ABORT, 'frozen-protocol: the arms of an experiment are fixed with its protocol');
END;

CREATE TRIGGER experiment_arms_no_delete BEFORE DELETE ON experiment_arms
BEGIN
    SELECT RAISE(ABORT, 'frozen-protocol: the arms of an experiment are fixed with its protocol');
END;
