import type { MigrationInterface, QueryRunner } from "typeorm";

/** A database trigger notifies all processes of each change of an action that its editors can see. */
export class ActionChanges1763600090000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE FUNCTION svc_action_edited() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
          copy action := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
        BEGIN
          PERFORM pg_notify('svc_action_edited',
            copy.app_id || ':' || coalesce(copy.master_id, copy.id) || ':' || (TG_OP = 'DELETE' AND copy.master_id IS NULL));
          RETURN NULL;
        END
      $$;
      CREATE TRIGGER action_edited AFTER INSERT OR DELETE OR UPDATE OF updated_at
        ON action FOR EACH ROW EXECUTE FUNCTION svc_action_edited();
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TRIGGER action_edited ON action; DROP FUNCTION svc_action_edited");
  }
}
