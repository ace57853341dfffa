import type { MigrationInterface, QueryRunner } from "typeorm";

/** Database triggers store which scripts an action uses, according to its `assets`, so that no other statement needs to. */
export class ScriptUses1763600240000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- Found by pattern: json is not taken apart, for ->> refuses what holds \\u0000 anywhere. In a text of the author's the quotes are escaped.
      CREATE FUNCTION svc_note_scripts() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF TG_OP = 'UPDATE' THEN
            DELETE FROM kept_script_use WHERE action_id = NEW.id;
          END IF;
          INSERT INTO kept_script_use (sha256, action_id)
            SELECT DISTINCT script[1], NEW.id FROM regexp_matches(NEW.assets::text, '"sha256": ?"([0-9a-f]{64})"', 'g') AS script;
          RETURN NULL;
        END
      $$;
      CREATE TRIGGER action_scripts_new AFTER INSERT ON action FOR EACH ROW
        WHEN (NEW.assets::text LIKE '%"sha256"%') EXECUTE FUNCTION svc_note_scripts();
      CREATE TRIGGER action_scripts_changed AFTER UPDATE OF assets ON action FOR EACH ROW
        WHEN (OLD.assets::text <> NEW.assets::text) EXECUTE FUNCTION svc_note_scripts();
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      "DROP TRIGGER action_scripts_new ON action; DROP TRIGGER action_scripts_changed ON action; DROP FUNCTION svc_note_scripts",
    );
  }
}
