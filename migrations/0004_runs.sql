-- Runs, their plan, and their units of work. A run says which protocol, engine, build and machine it
-- was; a unit succeeds only with an output, and every other end says why.

CREATE TABLE machines (
    id          TEXT    NOT NULL PRIMARY KEY CHECK (id GLOB 'MACH-*'),
    profile     TEXT    NOT NULL CHECK (json_type(profile) = 'object'),
    captured_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER machines_insert_once BEFORE INSERT ON machines
WHEN EXISTS (SELECT 1 FROM machines WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'append-only: this machine profile is on record');
END;

CREATE TRIGGER machines_no_update BEFORE UPDATE ON machines
BEGIN
    SELECT RAISE(ABORT, 'append-only: machine profiles never change');
END;

CREATE TRIGGER machines_no_delete BEFORE DELETE ON machines
BEGIN
    SELECT RAISE(ABORT, 'append-only: machine profiles are never deleted');
END;

CREATE TABLE runs (
    id              TEXT    NOT NULL PRIMARY KEY CHECK (id GLOB 'RUN-*'),
    experiment_id   TEXT    NOT NULL REFERENCES experiments (id),
    protocol_sha256 TEXT    NOT NULL CHECK (length(protocol_sha256) = 64
                                            AND protocol_sha256 NOT GLOB '*[^0-9a-f]*'),
    engine          TEXT    NOT NULL CHECK (engine <> ''),
    build           TEXT    NOT NULL CHECK (build <> ''),
    machine_id      TEXT    NOT NULL REFERENCES machines (id),
    origin          TEXT    NOT NULL CHECK (origin IN ('own', 'imported')),
    state           TEXT    NOT NULL CHECK (state IN ('queued', 'running', 'stopped', 'interrupted',
                                                      'failed', 'completed')),
    validity        TEXT    NOT NULL CHECK (validity IN ('pending', 'valid', 'partial', 'invalid')),
    reason          TEXT,
    validity_reason TEXT,
    created_at      INTEGER NOT NULL,
    started_at      INTEGER,
    ended_at        INTEGER,
    CHECK (state NOT IN ('stopped', 'interrupted', 'failed') OR (reason IS NOT NULL AND reason <> '')),
    CHECK (validity NOT IN ('partial', 'invalid')
           OR (validity_reason IS NOT NULL AND validity_reason <> '')),
    CHECK (state <> 'running' OR started_at IS NOT NULL),
    CHECK ((state IN ('queued', 'running')) = (ended_at IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX runs_by_time ON runs (created_at, id);
CREATE INDEX runs_of_experiment ON runs (experiment_id, id);
CREATE INDEX runs_by_state ON runs (state);

CREATE TRIGGER runs_insert_once BEFORE INSERT ON runs
WHEN EXISTS (SELECT 1 FROM runs WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'append-only: this run is on record');
END;

CREATE TRIGGER runs_insert_begins BEFORE INSERT ON runs
WHEN NEW.origin = 'own' AND (NEW.state <> 'queued' OR NEW.validity <> 'pending')
BEGIN
    SELECT RAISE(ABORT, 'transition: a run begins queued, with its validity pending');
END;

CREATE TRIGGER runs_insert_under_frozen_protocol BEFORE INSERT ON runs
WHEN NOT EXISTS (SELECT 1 FROM experiments
                 WHERE id = NEW.experiment_id AND protocol_sha256 = NEW.protocol_sha256)
BEGIN
    SELECT RAISE(ABORT, 'frozen-protocol: a run carries the digest of the frozen protocol of its experiment');
END;

CREATE TRIGGER runs_insert_not_withdrawn BEFORE INSERT ON runs
WHEN EXISTS (SELECT 1 FROM experiments WHERE id = NEW.experiment_id AND withdrawn_at IS NOT NULL)
BEGIN
    SELECT RAISE(ABORT, 'transition: a withdrawn experiment starts no run');
END;

CREATE TRIGGER runs_insert_engine BEFORE INSERT ON runs
WHEN EXISTS (SELECT 1 FROM experiments WHERE id = NEW.experiment_id AND engine <> NEW.engine)
BEGIN
    SELECT RAISE(ABORT, 'engine-mismatch: the protocol was frozen for another engine');
END;

CREATE TRIGGER runs_identity BEFORE UPDATE ON runs
WHEN NEW.id IS NOT OLD.id OR NEW.experiment_id IS NOT OLD.experiment_id
  OR NEW.protocol_sha256 IS NOT OLD.protocol_sha256 OR NEW.engine IS NOT OLD.engine
  OR NEW.build IS NOT OLD.build OR NEW.machine_id IS NOT OLD.machine_id
  OR NEW.origin IS NOT OLD.origin OR NEW.created_at IS NOT OLD.created_at
BEGIN
    SELECT RAISE(ABORT, 'append-only: what a run is never changes');
END;

CREATE TRIGGER runs_transition BEFORE UPDATE ON runs
WHEN NEW.state IS NOT OLD.state
 AND NOT ((OLD.state = 'queued' AND NEW.state IN ('running', 'stopped', 'interrupted', 'failed'))
       OR (OLD.state = 'running' AND NEW.state IN ('stopped', 'interrupted', 'failed', 'completed'))
       OR (OLD.state IN ('stopped', 'interrupted') AND NEW.state IN ('queued', 'running', 'failed')))
BEGIN
    SELECT RAISE(ABORT, 'transition: a run in this state cannot go there');
END;

CREATE TRIGGER runs_validity_transition BEFORE UPDATE ON runs
WHEN NEW.validity IS NOT OLD.validity
 AND NOT (OLD.validity = 'pending' OR (OLD.validity IN ('valid', 'partial') AND NEW.validity = 'invalid'))
BEGIN
    SELECT RAISE(ABORT, 'transition: a validity once judged can only become invalid');
END;

CREATE TRIGGER runs_complete_with_result BEFORE UPDATE ON runs
WHEN NEW.state = 'completed' AND OLD.state <> 'completed'
 AND (NOT EXISTS (SELECT 1 FROM results WHERE run_id = NEW.id)
      OR EXISTS (SELECT 1 FROM units
                 WHERE run_id = NEW.id AND state NOT IN ('succeeded', 'skipped')))
BEGIN
    SELECT RAISE(ABORT, 'incomplete: a run completes with its result, when every unit has succeeded');
END;

CREATE TRIGGER runs_no_delete BEFORE DELETE ON runs
BEGIN
    SELECT RAISE(ABORT, 'append-only: runs are never deleted');
END;

-- The games a verdict needs, copied from the experiment when the run is made.
CREATE TABLE run_arms (
    run_id   TEXT    NOT NULL REFERENCES runs (id),
    arm      TEXT    NOT NULL CHECK (arm <> ''),
    position INTEGER NOT NULL CHECK (position >= 0),
    games    INTEGER NOT NULL CHECK (games >= 1),
    lease_id TEXT    NOT NULL REFERENCES leases (id),
    PRIMARY KEY (run_id, arm)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER run_arms_insert_as_planned BEFORE INSERT ON run_arms
WHEN NOT EXISTS (SELECT 1 FROM runs AS r
                 JOIN experiment_arms AS a ON a.experiment_id = r.experiment_id
                 JOIN lease_uses AS u ON u.experiment_id = a.experiment_id AND u.block = a.block
                 JOIN leases AS l ON l.id = u.lease_id
                 WHERE r.id = NEW.run_id AND a.arm = NEW.arm AND a.position = NEW.position
                   AND a.games = NEW.games AND u.lease_id = NEW.lease_id
                   AND l.role = 'held-out' AND a.games <= l.end_exclusive - l.start)
BEGIN
    SELECT RAISE(ABORT, 'frozen-protocol: a run plays the arms of its protocol, on their held-out lease');
END;

CREATE TRIGGER run_arms_insert_once BEFORE INSERT ON run_arms
WHEN EXISTS (SELECT 1 FROM run_arms WHERE run_id = NEW.run_id AND arm = NEW.arm)
BEGIN
    SELECT RAISE(ABORT, 'append-only: the plan of a run never changes');
END;

CREATE TRIGGER run_arms_no_update BEFORE UPDATE ON run_arms
BEGIN
    SELECT RAISE(ABORT, 'append-only: the plan of a run never changes');
END;

CREATE TRIGGER run_arms_no_delete BEFORE DELETE ON run_arms
BEGIN
    SELECT RAISE(ABORT, 'append-only: the plan of a run never changes');
END;

CREATE TABLE units (
    run_id       TEXT    NOT NULL REFERENCES runs (id),
    key          TEXT    NOT NULL CHECK (key <> ''),
    position     INTEGER NOT NULL CHECK (position >= 0),
    stage        TEXT    NOT NULL CHECK (stage IN ('gates', 'train', 'select', 'main', 'freeze', 'edit',
                                                   'screen', 'analyse')),
    state        TEXT    NOT NULL CHECK (state IN ('pending', 'running', 'succeeded', 'failed', 'stopped',
                                                   'interrupted', 'skipped')),
    attempt      INTEGER NOT NULL CHECK (attempt >= 0),
    reason       TEXT,
    done         INTEGER NOT NULL CHECK (done >= 0),
    total        INTEGER NOT NULL CHECK (total >= 0),
    output       TEXT    CHECK (json_valid(output)),
    started_at   INTEGER,
    ended_at     INTEGER,
    heartbeat_at INTEGER,
    PRIMARY KEY (run_id, key),
    CONSTRAINT success_has_output CHECK ((state = 'succeeded') = (output IS NOT NULL)),
    CONSTRAINT other_ends_have_a_reason
        CHECK (state NOT IN ('failed', 'stopped', 'interrupted', 'skipped')
               OR (reason IS NOT NULL AND reason <> '')),
    CONSTRAINT work_is_an_attempt CHECK (state NOT IN ('running', 'succeeded') OR attempt >= 1)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER units_insert_once BEFORE INSERT ON units
WHEN EXISTS (SELECT 1 FROM units WHERE run_id = NEW.run_id AND key = NEW.key)
BEGIN
    SELECT RAISE(ABORT, 'append-only: this unit is planned');
END;

CREATE TRIGGER units_insert_pending BEFORE INSERT ON units
WHEN NEW.state <> 'pending' OR NEW.attempt <> 0
BEGIN
    SELECT RAISE(ABORT, 'transition: a unit begins pending');
END;

CREATE TRIGGER units_identity BEFORE UPDATE ON units
WHEN NEW.run_id IS NOT OLD.run_id OR NEW.key IS NOT OLD.key OR NEW.position IS NOT OLD.position
  OR NEW.stage IS NOT OLD.stage OR NEW.total IS NOT OLD.total
BEGIN
    SELECT RAISE(ABORT, 'append-only: what a unit is never changes');
END;

CREATE TRIGGER units_success_with_output BEFORE UPDATE ON units
WHEN NEW.state = 'succeeded' AND NEW.output IS NULL
BEGIN
    SELECT RAISE(ABORT, 'success-without-output: a unit succeeds only with its output');
END;

CREATE TRIGGER units_transition BEFORE UPDATE ON units
WHEN (NEW.state IS NOT OLD.state
      AND NOT ((OLD.state = 'pending' AND NEW.state IN ('running', 'skipped'))
            OR (OLD.state = 'running' AND NEW.state IN ('succeeded', 'failed', 'stopped', 'interrupted'))
            OR (OLD.state IN ('failed', 'stopped', 'interrupted') AND NEW.state IN ('running', 'skipped'))))
  OR (NEW.attempt IS NOT OLD.attempt
      AND NOT (NEW.state = 'running' AND NEW.attempt = OLD.attempt + 1))
  OR (NEW.state = 'running' AND OLD.state <> 'running' AND NEW.attempt <> OLD.attempt + 1)
  OR (OLD.state IN ('succeeded', 'skipped')
      AND (NEW.output IS NOT OLD.output OR NEW.reason IS NOT OLD.reason OR NEW.done IS NOT OLD.done
           OR NEW.started_at IS NOT OLD.started_at OR NEW.ended_at IS NOT OLD.ended_at))
BEGIN
    SELECT RAISE(ABORT, 'transition: a unit in this state cannot go there');
END;

CREATE TRIGGER units_no_delete BEFORE DELETE ON units
BEGIN
    SELECT RAISE(ABORT, 'append-only: units are never deleted');
END;

CREATE TABLE attempts (
    run_id     TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    attempt    INTEGER NOT NULL CHECK (attempt >= 1),
    token      TEXT    NOT NULL CHECK (length(token) = 32),
    state      TEXT    NOT NULL CHECK (state IN ('running', 'succeeded', 'failed', 'stopped', 'interrupted')),
    reason     TEXT,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER,
    PRIMARY KEY (run_id, key, attempt),
    FOREIGN KEY (run_id, key) REFERENCES units (run_id, key),
    CHECK ((state = 'running') = (ended_at IS NULL)),
    CHECK (state NOT IN ('failed', 'stopped', 'interrupted') OR (reason IS NOT NULL AND reason <> ''))
) STRICT, WITHOUT ROWID;

CREATE TRIGGER attempts_insert_once BEFORE INSERT ON attempts
WHEN EXISTS (SELECT 1 FROM attempts
             WHERE run_id = NEW.run_id AND key = NEW.key AND attempt = NEW.attempt)
BEGIN
    SELECT RAISE(ABORT, 'append-only: this attempt is on record');
END;

CREATE TRIGGER attempts_insert_alone BEFORE INSERT ON attempts
WHEN NEW.state <> 'running'
  OR EXISTS (SELECT 1 FROM attempts
             WHERE run_id = NEW.run_id AND key = NEW.key AND state = 'running')
BEGIN
    SELECT RAISE(ABORT, 'transition: a unit has one running attempt');
END;

CREATE TRIGGER attempts_end_once BEFORE UPDATE ON attempts
WHEN OLD.state <> 'running' OR NEW.run_id IS NOT OLD.run_id OR NEW.key IS NOT OLD.key
  OR NEW.attempt IS NOT OLD.attempt OR NEW.token IS NOT OLD.token
  OR NEW.started_at IS NOT OLD.started_at
BEGIN
    SELECT RAISE(ABORT, 'append-only: an attempt ends once');
END;

CREATE TRIGGER attempts_no_delete BEFORE DELETE ON attempts
BEGIN
    SELECT RAISE(ABORT, 'append-only: attempts are never deleted');
END;
