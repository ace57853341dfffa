import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * A database trigger notifies all processes of each change of an action that pages can run. Unlike application code, it misses no change,
 * such as a cascading delete.
 */
export class ClientActions1763600050000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE FUNCTION svc_action_changed() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF TG_OP <> 'INSERT' AND OLD.environment <> 'server' THEN
            PERFORM pg_notify('svc_action', OLD.app_id || ':' || OLD.id);
          ELSIF TG_OP <> 'DELETE' AND NEW.environment <> 'server' THEN
            PERFORM pg_notify('svc_action', NEW.app_id || ':' || NEW.id);
          END IF;
          RETURN NULL;
        END
      $$;
      CREATE TRIGGER action_changed
        AFTER INSERT OR DELETE
           OR UPDATE OF app_id, master_id, name, code, active, environment, action_version, triggers, assets
        ON action FOR EACH ROW EXECUTE FUNCTION svc_action_changed();
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TRIGGER action_changed ON action; DROP FUNCTION svc_action_changed");
  }
}
