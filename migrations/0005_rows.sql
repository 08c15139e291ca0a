-- What runs produce: training chunks, validation points, games. Rows are added and never changed.

CREATE TABLE chunks (
    run_id      TEXT    NOT NULL REFERENCES runs (id),
    arm         TEXT    NOT NULL CHECK (arm <> ''),
    attempt     INTEGER NOT NULL CHECK (attempt >= 0),
    chunk       INTEGER NOT NULL CHECK (chunk >= 0),
    moves_total INTEGER NOT NULL CHECK (moves_total >= 0),
    figures     TEXT    NOT NULL CHECK (json_valid(figures)),
    PRIMARY KEY (run_id, arm, attempt, chunk)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER chunks_insert_once BEFORE INSERT ON chunks
WHEN EXISTS (SELECT 1 FROM chunks WHERE run_id = NEW.run_id AND arm = NEW.arm
             AND attempt = NEW.attempt AND chunk = NEW.chunk)
BEGIN
    SELECT RAISE(ABORT, 'append-only: this chunk is on record');
END;

CREATE TRIGGER chunks_no_update BEFORE UPDATE ON chunks
BEGIN
    SELECT RAISE(ABORT, 'append-only: chunks never change');
END;

CREATE TRIGGER chunks_no_delete BEFORE DELETE ON chunks
BEGIN
    SELECT RAISE(ABORT, 'append-only: chunks are never deleted');
END;

CREATE TABLE points (
    run_id  TEXT    NOT NULL REFERENCES runs (id),
    arm     TEXT    NOT NULL CHECK (arm <> ''),
    attempt INTEGER NOT NULL CHECK (attempt >= 0),
    point   INTEGER NOT NULL CHECK (point >= 1),
    moves   INTEGER NOT NULL CHECK (moves >= 0),
    margin  REAL    NOT NULL,
    is_best INTEGER NOT NULL CHECK (is_best IN (0, 1)),
    figures TEXT    NOT NULL CHECK (json_valid(figures)),
    PRIMARY KEY (run_id, arm, attempt, point)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER points_insert_once BEFORE INSERT ON points
WHEN EXISTS (SELECT 1 FROM points WHERE run_id = NEW.run_id AND arm = NEW.arm
             AND attempt = NEW.attempt AND (point = NEW.point OR moves = NEW.moves))
BEGIN
    SELECT RAISE(ABORT, 'append-only: this point is on record');
END;

CREATE TRIGGER points_no_update BEFORE UPDATE ON points
BEGIN
    SELECT RAISE(ABORT, 'append-only: points never change');
END;

CREATE TRIGGER points_no_delete BEFORE DELETE ON points
BEGIN
    SELECT RAISE(ABORT, 'append-only: points are never deleted');
END;

-- `batch` is the number of the event that holds the digest of the rows stored together.
CREATE TABLE game_rows (
    run_id               TEXT    NOT NULL REFERENCES runs (id),
    arm                  TEXT    NOT NULL,
    ordinal              INTEGER NOT NULL CHECK (ordinal >= 0),
    lease_id             TEXT    NOT NULL REFERENCES leases (id),
    attempt              INTEGER NOT NULL CHECK (attempt >= 0),
    batch                INTEGER NOT NULL REFERENCES events (seq) DEFERRABLE INITIALLY DEFERRED,
    seed                 INTEGER NOT NULL CHECK (seed BETWEEN 0 AND 4294967295),
    score                INTEGER NOT NULL,
    moves                INTEGER NOT NULL CHECK (moves >= 0),
    numbered_cleared     INTEGER CHECK (numbered_cleared >= 0),
    covers_revealed      INTEGER CHECK (covers_revealed >= 0),
    max_chain_depth      INTEGER CHECK (max_chain_depth >= 0),
    occupied_sum         INTEGER CHECK (occupied_sum >= 0),
    mean_occupied_cells  REAL    CHECK (mean_occupied_cells >= 0),
    clears               INTEGER CHECK (clears >= 0),
    censored             INTEGER NOT NULL CHECK (censored IN (0, 1)),
    illegal_decisions    INTEGER NOT NULL CHECK (illegal_decisions >= 0),
    incomplete_decisions INTEGER NOT NULL CHECK (incomplete_decisions >= 0),
    work                 INTEGER CHECK (work >= 0),
    wall_seconds         REAL    CHECK (wall_seconds >= 0),
    PRIMARY KEY (run_id, arm, ordinal)
) STRICT, WITHOUT ROWID;

CREATE INDEX game_rows_of_batch ON game_rows (batch);

CREATE TRIGGER game_rows_insert_once BEFORE INSERT ON game_rows
WHEN EXISTS (SELECT 1 FROM game_rows
             WHERE run_id = NEW.run_id AND arm = NEW.arm AND ordinal = NEW.ordinal)
BEGIN
    SELECT RAISE(ABORT, 'append-only: this game is on record');
END;

CREATE TRIGGER game_rows_insert_planned BEFORE INSERT ON game_rows
WHEN NOT EXISTS (SELECT 1 FROM run_arms
                 WHERE run_id = NEW.run_id AND arm = NEW.arm AND lease_id = NEW.lease_id
                   AND NEW.ordinal < games)
BEGIN
    SELECT RAISE(ABORT, 'game-not-planned: the run plans no such game');
END;

CREATE TRIGGER game_rows_insert_seed BEFORE INSERT ON game_rows
WHEN NEW.seed IS NOT (SELECT start + NEW.ordinal FROM leases WHERE id = NEW.lease_id)
BEGIN
    SELECT RAISE(ABORT, 'wrong-seed: the game of an ordinal is the game of that seed of the lease');
END;

CREATE TRIGGER game_rows_insert_opened BEFORE INSERT ON game_rows
WHEN NOT EXISTS (SELECT 1 FROM lease_openings
                 WHERE lease_id = NEW.lease_id AND run_id = NEW.run_id)
BEGIN
    SELECT RAISE(ABORT, 'lease-not-opened: a run plays the games of a lease that it has opened');
END;

CREATE TRIGGER game_rows_insert_before_verdict BEFORE INSERT ON game_rows
WHEN EXISTS (SELECT 1 FROM results WHERE run_id = NEW.run_id)
BEGIN
    SELECT RAISE(ABORT, 'verdict-recorded: no game is added after the verdict');
END;

CREATE TRIGGER game_rows_no_update BEFORE UPDATE ON game_rows
BEGIN
    SELECT RAISE(ABORT, 'append-only: games never change');
END;

CREATE TRIGGER game_rows_no_delete BEFORE DELETE ON game_rows
BEGIN
    SELECT RAISE(ABORT, 'append-only: games are never deleted');
END;
