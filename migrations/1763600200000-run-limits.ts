import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * Run limits of actions, and the unfinished runs to which they apply. `run.waits_for` names the limit for which a run waits; the index for
 * claiming runs excludes these runs. A database trigger releases the slot of a run, whichever statement ends the run.
 */
export class RunLimits1763600200000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE action ADD COLUMN concurrency json, ADD COLUMN debounce json, ADD COLUMN timeout_ms integer;
      -- What a run that it starts waits for first: null, 'concurrency' or 'debounce'.
      ALTER TABLE log_trigger ADD COLUMN waits_for text;
      -- ready_at: since when a run that waited for one of them may start.
      ALTER TABLE run ADD COLUMN waits_for text, ADD COLUMN ready_at timestamptz;
      CREATE INDEX run_ready ON run (app_id, id) WHERE state = 'queued' AND waits_for IS NULL;

      -- Each run under a limit that has not ended; admitted: it has one of its key's places.
      CREATE TABLE run_concurrency (
        run_id bigint PRIMARY KEY,
        action_id bigint NOT NULL,
        key bytea NOT NULL,
        policy text NOT NULL,
        admitted boolean NOT NULL DEFAULT false
      );
      CREATE INDEX run_concurrency_key ON run_concurrency (action_id, key, admitted, run_id);
      -- Keys that are to be looked at, since a run came or ended. Rows are added alone: nobody waits for anybody.
      CREATE TABLE concurrency_due (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        action_id bigint NOT NULL,
        key bytea NOT NULL,
        at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX concurrency_due_at ON concurrency_due (at);
      CREATE INDEX concurrency_due_key ON concurrency_due (action_id, key);
      -- The run that starts of an action, or of one caller of it, are folded into. sender '' stands for events.
      CREATE TABLE debounced_run (
        action_id bigint NOT NULL,
        sender text NOT NULL,
        run_id bigint NOT NULL,
        first_at timestamptz NOT NULL,
        due_at timestamptz NOT NULL,
        PRIMARY KEY (action_id, sender)
      );
      CREATE INDEX debounced_run_due ON debounced_run (due_at);
      CREATE INDEX debounced_run_run ON debounced_run (run_id);

      -- A hash, so that no payload is told and a value of any length will do. Text in PostgreSQL holds neither U+0000 nor half a pair.
      CREATE FUNCTION svc_concurrency_key(path text, payload text) RETURNS bytea IMMUTABLE LANGUAGE plpgsql AS $$
        DECLARE
          value text;
        BEGIN
          IF path IS NULL THEN RETURN ''; END IF;
          value := regexp_replace(payload, '\\\\u(0000|d[89a-f][0-9a-f]{2})', '\\\\ufffd', 'gi')::json
                   #>> string_to_array(path, '.');
          RETURN coalesce(sha256(convert_to(value, 'UTF8')), '');
        END
      $$;

      -- A run has come that its action's limit concerns: its key is to be looked at.
      CREATE FUNCTION svc_count_run(run_id bigint, action_id bigint, payload text, concurrency json) RETURNS void LANGUAGE plpgsql AS $$
        DECLARE
          key CONSTANT bytea := svc_concurrency_key(concurrency->>'key', payload);
        BEGIN
          INSERT INTO run_concurrency (run_id, action_id, key, policy) VALUES (run_id, action_id, key, concurrency->>'policy');
          INSERT INTO concurrency_due (action_id, key) VALUES (action_id, key);
          PERFORM pg_notify('svc_limits', '');
        END
      $$;

      -- NULL for a run whose payload became that of one that waits already.
      CREATE FUNCTION svc_run_debounced() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
          given json;
          delay interval;
          longest interval;
          its_sender CONSTANT text := CASE WHEN NEW.trigger = 'log' THEN ''
                                           ELSE coalesce('p' || NEW.person_id, 'c' || NEW.credential_id, '') END;
          first bigint;
        BEGIN
          SELECT debounce INTO given FROM action WHERE id = NEW.action_id;
          -- Whoever wrote the run knew an older state of the action; the next trigger says whether it waits for something else.
          IF given IS NULL THEN
            NEW.waits_for := 'concurrency';
            RETURN NEW;
          END IF;
          delay := (given->>'delayMs')::int * interval '1 millisecond';
          longest := (given->>'maxWaitMs')::int * interval '1 millisecond';
          INSERT INTO debounced_run AS kept (action_id, sender, run_id, first_at, due_at)
          VALUES (NEW.action_id, its_sender, NEW.id, clock_timestamp(), clock_timestamp() + delay)
          ON CONFLICT (action_id, sender) DO UPDATE SET due_at = least(clock_timestamp() + delay, kept.first_at + longest)
          RETURNING kept.run_id INTO first;
          IF first = NEW.id THEN
            PERFORM pg_notify('svc_limits', '');
            RETURN NEW;
          END IF;
          -- Skipped where somebody is just ending it: then this one takes its place.
          PERFORM FROM run WHERE id = first AND state = 'queued' AND waits_for = 'debounce' FOR UPDATE SKIP LOCKED;
          IF FOUND THEN
            UPDATE run SET payload = NEW.payload, event_id = NEW.event_id, person_id = NEW.person_id, credential_id = NEW.credential_id,
                           cause_run_id = NEW.cause_run_id, chain_id = NEW.chain_id, depth = NEW.depth
             WHERE id = first;
            RETURN NULL;
          END IF;
          UPDATE debounced_run SET run_id = NEW.id, first_at = clock_timestamp(), due_at = clock_timestamp() + delay
           WHERE action_id = NEW.action_id AND sender = its_sender;
          RETURN NEW;
        END
      $$;
      CREATE TRIGGER run_debounced BEFORE INSERT ON run FOR EACH ROW
        WHEN (NEW.waits_for = 'debounce' AND NEW.state = 'queued') EXECUTE FUNCTION svc_run_debounced();

      CREATE FUNCTION svc_run_counted() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
          given json;
        BEGIN
          SELECT concurrency INTO given FROM action WHERE id = NEW.action_id;
          IF given IS NULL THEN
            NEW.waits_for := NULL;
          ELSE
            PERFORM svc_count_run(NEW.id, NEW.action_id, svc_run_payload(NEW.payload, NEW.event_id), given);
          END IF;
          RETURN NEW;
        END
      $$;
      -- Triggers of one kind fire in the order of their names: this one after that of debouncing.
      CREATE TRIGGER run_joins_limit BEFORE INSERT ON run FOR EACH ROW
        WHEN (NEW.waits_for = 'concurrency' AND NEW.state = 'queued') EXECUTE FUNCTION svc_run_counted();

      CREATE FUNCTION svc_run_waits_no_more() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
          place record;
        BEGIN
          DELETE FROM debounced_run WHERE run_id = OLD.id;
          DELETE FROM run_concurrency WHERE run_id = OLD.id RETURNING action_id, key, admitted INTO place;
          IF place.admitted THEN
            INSERT INTO concurrency_due (action_id, key) VALUES (place.action_id, place.key);
            PERFORM pg_notify('svc_limits', '');
          END IF;
          RETURN NULL;
        END
      $$;
      CREATE TRIGGER run_waits_no_more AFTER UPDATE OF finished_at ON run FOR EACH ROW
        WHEN (OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL AND (OLD.waits_for IS NOT NULL OR OLD.ready_at IS NOT NULL))
        EXECUTE FUNCTION svc_run_waits_no_more();
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP TRIGGER run_waits_no_more ON run;
      DROP TRIGGER run_joins_limit ON run;
      DROP TRIGGER run_debounced ON run;
      DROP FUNCTION svc_run_waits_no_more, svc_run_counted, svc_run_debounced, svc_count_run, svc_concurrency_key;
      DROP TABLE debounced_run, concurrency_due, run_concurrency;
      DROP INDEX run_ready;
      ALTER TABLE run DROP COLUMN waits_for, DROP COLUMN ready_at;
      ALTER TABLE log_trigger DROP COLUMN waits_for;
      ALTER TABLE action DROP COLUMN concurrency, DROP COLUMN debounce, DROP COLUMN timeout_ms;
    `);
  }
}
