-- Results, artifacts, and the records beside them. A verdict stands on every planned game of every arm.

CREATE TABLE results (
    id              TEXT    NOT NULL PRIMARY KEY CHECK (id GLOB 'RS-*'),
    run_id          TEXT    NOT NULL REFERENCES runs (id),
    experiment_id   TEXT    NOT NULL REFERENCES experiments (id),
    protocol_sha256 TEXT    NOT NULL,
    validity        TEXT    NOT NULL CHECK (validity IN ('valid', 'partial', 'invalid')),
    outcome         TEXT    NOT NULL CHECK (outcome IN ('pass', 'fail', 'inconclusive', 'not-applicable')),
    tier            TEXT    NOT NULL CHECK (tier <> ''),
    analysis        TEXT    NOT NULL CHECK (json_valid(analysis)),
    summary         TEXT    NOT NULL CHECK (summary <> ''),
    limitations     TEXT    NOT NULL CHECK (json_type(limitations) = 'array'),
    machine_id      TEXT    NOT NULL REFERENCES machines (id),
    origin          TEXT    NOT NULL CHECK (origin IN ('own', 'imported')),
    recorded_at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX results_of_run ON results (run_id);
CREATE INDEX results_by_time ON results (recorded_at, id);

CREATE TRIGGER results_insert_once BEFORE INSERT ON results
WHEN EXISTS (SELECT 1 FROM results WHERE id = NEW.id OR run_id = NEW.run_id)
BEGIN
    SELECT RAISE(ABORT, 'append-only: this run has its result');
END;

CREATE TRIGGER results_insert_of_its_run BEFORE INSERT ON results
WHEN NOT EXISTS (SELECT 1 FROM runs
                 WHERE id = NEW.run_id AND experiment_id = NEW.experiment_id
                   AND protocol_sha256 = NEW.protocol_sha256 AND machine_id = NEW.machine_id
                   AND origin = NEW.origin AND validity = NEW.validity)
BEGIN
    SELECT RAISE(ABORT, 'result-mismatch: a result repeats the experiment, digest, machine and validity of its run');
END;

CREATE TRIGGER results_insert_judged_only_if_valid BEFORE INSERT ON results
WHEN NEW.validity <> 'valid' AND NEW.outcome IN ('pass', 'fail')
BEGIN
    SELECT RAISE(ABORT, 'incomplete: only a valid run passes or fails');
END;

CREATE TRIGGER results_insert_every_game BEFORE INSERT ON results
WHEN NEW.validity = 'valid'
 AND (NOT EXISTS (SELECT 1 FROM run_arms WHERE run_id = NEW.run_id)
      OR EXISTS (SELECT 1 FROM runs AS r JOIN experiment_arms AS a ON a.experiment_id = r.experiment_id
                 WHERE r.id = NEW.run_id
                   AND NOT EXISTS (SELECT 1 FROM run_arms AS p
                                   WHERE p.run_id = NEW.run_id AND p.arm = a.arm))
      OR EXISTS (SELECT 1 FROM run_arms AS p
                 WHERE p.run_id = NEW.run_id
                   AND p.games <> (SELECT count(*) FROM game_rows AS g
                                   WHERE g.run_id = p.run_id AND g.arm = p.arm
                                     AND g.ordinal < p.games)))
BEGIN
    SELECT RAISE(ABORT, 'incomplete: a verdict needs every planned game of every arm');
END;

CREATE TRIGGER results_no_update BEFORE UPDATE ON results
BEGIN
    SELECT RAISE(ABORT, 'append-only: results never change');
END;

CREATE TRIGGER results_no_delete BEFORE DELETE ON results
BEGIN
    SELECT RAISE(ABORT, 'append-only: results are never deleted');
END;

-- A stored file: identity is the digest of its plain bytes.
CREATE TABLE artifacts (
    sha256        TEXT    NOT NULL PRIMARY KEY CHECK (length(sha256) = 64 AND sha256 NOT GLOB '*[^0-9a-f]*'),
    bytes         INTEGER NOT NULL CHECK (bytes >= 0),
    stored_sha256 TEXT    NOT NULL CHECK (length(stored_sha256) = 64
                                          AND stored_sha256 NOT GLOB '*[^0-9a-f]*'),
    stored_bytes  INTEGER NOT NULL CHECK (stored_bytes >= 0),
    kind          TEXT    NOT NULL CHECK (kind IN ('table', 'checkpoint', 'protocol', 'import')),
    name          TEXT    NOT NULL CHECK (name <> ''),
    created_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER artifacts_insert_once BEFORE INSERT ON artifacts
WHEN EXISTS (SELECT 1 FROM artifacts WHERE sha256 = NEW.sha256)
BEGIN
    SELECT RAISE(ABORT, 'append-only: this artifact is on record');
END;

CREATE TRIGGER artifacts_no_update BEFORE UPDATE ON artifacts
BEGIN
    SELECT RAISE(ABORT, 'append-only: artifacts never change');
END;

CREATE TRIGGER artifacts_no_delete BEFORE DELETE ON artifacts
BEGIN
    SELECT RAISE(ABORT, 'append-only: artifacts are never deleted');
END;

-- Which run made or used a stored file, under which name. Two runs may make the same bytes.
CREATE TABLE artifact_uses (
    run_id     TEXT    NOT NULL REFERENCES runs (id),
    name       TEXT    NOT NULL CHECK (name <> ''),
    kind       TEXT    NOT NULL CHECK (kind IN ('table', 'checkpoint', 'protocol', 'import')),
    sha256     TEXT    NOT NULL REFERENCES artifacts (sha256),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (run_id, kind, name, sha256)
) STRICT, WITHOUT ROWID;

CREATE INDEX artifact_uses_of_artifact ON artifact_uses (sha256);

CREATE TRIGGER artifact_uses_insert_once BEFORE INSERT ON artifact_uses
WHEN EXISTS (SELECT 1 FROM artifact_uses WHERE run_id = NEW.run_id AND kind = NEW.kind
             AND name = NEW.name AND sha256 = NEW.sha256)
BEGIN
    SELECT RAISE(ABORT, 'append-only: this use is on record');
END;

CREATE TRIGGER artifact_uses_no_update BEFORE UPDATE ON artifact_uses
BEGIN
    SELECT RAISE(ABORT, 'append-only: uses of artifacts never change');
END;

CREATE TRIGGER artifact_uses_no_delete BEFORE DELETE ON artifact_uses
BEGIN
    SELECT RAISE(ABORT, 'append-only: uses of artifacts are never deleted');
END;

CREATE TABLE datasets (
    id                 TEXT    NOT NULL PRIMARY KEY CHECK (id GLOB 'DS-*'),
    title              TEXT    NOT NULL CHECK (title <> ''),
    data_role          TEXT    NOT NULL CHECK (data_role IN ('training', 'validation', 'held-out', 'diagnostic')),
    information_class  TEXT    NOT NULL CHECK (information_class IN ('public-only', 'privileged-teacher', 'mixed')),
    origin_unit        TEXT    NOT NULL CHECK (origin_unit <> ''),
    origin_count       INTEGER NOT NULL CHECK (origin_count >= 0),
    row_count          INTEGER NOT NULL CHECK (row_count >= 0),
    whole_origin_split INTEGER NOT NULL CHECK (whole_origin_split IN (0, 1)),
    leases             TEXT    NOT NULL CHECK (json_type(leases) = 'array'),
    parents            TEXT    NOT NULL CHECK (json_type(parents) = 'array'),
    fields             TEXT    NOT NULL CHECK (json_type(fields) = 'array'),
    privileged_fields  TEXT    NOT NULL CHECK (json_type(privileged_fields) = 'array'),
    notes              TEXT    NOT NULL CHECK (json_type(notes) = 'array'),
    artifact_sha256    TEXT    NOT NULL REFERENCES artifacts (sha256),
    created_at         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER datasets_insert_once BEFORE INSERT ON datasets
WHEN EXISTS (SELECT 1 FROM datasets WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'append-only: this dataset is on record');
END;

CREATE TRIGGER datasets_insert_known_references BEFORE INSERT ON datasets
WHEN EXISTS (SELECT 1 FROM json_each(NEW.leases) WHERE value NOT IN (SELECT id FROM leases))
  OR EXISTS (SELECT 1 FROM json_each(NEW.parents) WHERE value NOT IN (SELECT id FROM datasets))
BEGIN
    SELECT RAISE(ABORT, 'unknown-reference: a dataset names leases and datasets on record');
END;

CREATE TRIGGER datasets_no_update BEFORE UPDATE ON datasets
BEGIN
    SELECT RAISE(ABORT, 'append-only: datasets never change');
END;

CREATE TRIGGER datasets_no_delete BEFORE DELETE ON datasets
BEGIN
    SELECT RAISE(ABORT, 'append-only: datasets are never deleted');
END;

CREATE TABLE contributions (
    id             TEXT    NOT NULL PRIMARY KEY CHECK (id GLOB 'CT-*'),
    actor_kind     TEXT    NOT NULL CHECK (actor_kind IN ('model', 'human', 'tool', 'mixed')),
    actor          TEXT    NOT NULL CHECK (actor <> ''),
    level          TEXT    NOT NULL CHECK (level IN ('L0', 'L1', 'L2', 'L3', 'L4')),
    roles          TEXT    NOT NULL CHECK (json_type(roles) = 'array' AND json_array_length(roles) >= 1),
    summary        TEXT    NOT NULL CHECK (summary <> ''),
    subjects       TEXT    NOT NULL CHECK (json_type(subjects) = 'array'),
    commits        TEXT    NOT NULL CHECK (json_type(commits) = 'array'),
    limitations    TEXT    NOT NULL CHECK (json_type(limitations) = 'array'),
    notes          TEXT    NOT NULL CHECK (json_type(notes) = 'array'),
    self_reported  INTEGER NOT NULL CHECK (self_reported IN (0, 1)),
    recorded_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER contributions_insert_once BEFORE INSERT ON contributions
WHEN EXISTS (SELECT 1 FROM contributions WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'append-only: this contribution is on record');
END;

CREATE TRIGGER contributions_insert_known_references BEFORE INSERT ON contributions
WHEN EXISTS (SELECT 1 FROM json_each(NEW.subjects)
             WHERE value NOT IN (SELECT id FROM theories UNION ALL SELECT id FROM experiments
                                 UNION ALL SELECT id FROM runs UNION ALL SELECT id FROM results
                                 UNION ALL SELECT sha256 FROM artifacts))
BEGIN
    SELECT RAISE(ABORT, 'unknown-reference: a contribution names records that exist');
END;

CREATE TRIGGER contributions_no_update BEFORE UPDATE ON contributions
BEGIN
    SELECT RAISE(ABORT, 'append-only: contributions never change');
END;

CREATE TRIGGER contributions_no_delete BEFORE DELETE ON contributions
BEGIN
    SELECT RAISE(ABORT, 'append-only: contributions are never deleted');
END;
