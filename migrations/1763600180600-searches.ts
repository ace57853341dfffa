import type { MigrationInterface, QueryRunner } from "typeorm";

/** ASCII characters that are neither letters nor digits separate words. All other characters are part of words. */
const SEPARATORS = Array.from({ length: 127 }, (_, code) => String.fromCharCode(code + 1))
  .filter((character) => !/[A-Za-z0-9]/.test(character))
  .join("");
const QUOTED = `'${SEPARATORS.replaceAll("'", "''")}'`;

/** Search index of the words in payloads, results, errors and console lines of runs. The service adds a run's words after its end. */
export class Searches1763600180600 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE run_search (run_id bigint NOT NULL PRIMARY KEY, words tsvector NOT NULL) PARTITION BY RANGE (run_id);
      CREATE INDEX run_search_words ON run_search USING gin (words) WITH (gin_pending_list_limit = 512);
      DO $$
        DECLARE
          bound text := substring(pg_get_expr((SELECT relpartbound FROM pg_class WHERE oid = 'run_rest'::regclass),
                                              'run_rest'::regclass) FROM '\\d+');
        BEGIN
          EXECUTE format('CREATE TABLE run_search_p1 PARTITION OF run_search FOR VALUES FROM (MINVALUE) TO (%s)', bound);
          EXECUTE format('CREATE TABLE run_search_rest PARTITION OF run_search FOR VALUES FROM (%s) TO (MAXVALUE)', bound);
        END
      $$;
      -- How far it is: all that ended between the two moments has its words.
      CREATE TABLE run_search_mark (
        only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
        newest timestamptz NOT NULL DEFAULT now(),
        oldest timestamptz NOT NULL DEFAULT now()
      );
      INSERT INTO run_search_mark DEFAULT VALUES;
      -- Each word once, with its app as one more, '@' and the number. JSON's escapes separate, as what they stand for mostly does.
      CREATE FUNCTION svc_search_words(app_id bigint, given text) RETURNS tsvector IMMUTABLE LANGUAGE sql AS $$
        SELECT array_to_tsvector(ARRAY['@' || app_id] || ARRAY(
          SELECT DISTINCT left(word, 64)
            FROM unnest(string_to_array(translate(
                   lower(regexp_replace(given, '\\\\(u[0-9a-f]{4}|.)', ' ', 'g') COLLATE "C"),
                   ${QUOTED}, '${" ".repeat(SEPARATORS.length)}'), ' ')) AS word
           WHERE word <> ''))
      $$;
      -- Their statements have no values when they are planned: a plan for each entry would cost more than the entry.
      ALTER FUNCTION svc_entry_data SET plan_cache_mode = force_generic_plan;
      ALTER FUNCTION svc_run_payload SET plan_cache_mode = force_generic_plan;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER FUNCTION svc_run_payload RESET plan_cache_mode;
      ALTER FUNCTION svc_entry_data RESET plan_cache_mode;
      DROP FUNCTION svc_search_words;
      DROP TABLE run_search, run_search_mark;
    `);
  }
}
