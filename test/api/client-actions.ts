/** Creates, changes and publishes client actions of a test's app. */
import { expect } from "chai";
import type { TestService } from "../harness/service.js";

export const ON_PAGE_VIEW = [{ trigger: "analytics", where: { type: "analytics.pageView" } }];
export const code = (value: string) => `async function execute() { return ${JSON.stringify(value)}; }`;

let names = 0;

/** @param getService called only after the service has started */
export function clientActions(getService: () => TestService) {
  const actions = () => `/v3/apps/${getService().appId}/actions`;

  return {
    actions,

    async create(more: object = {}): Promise<number> {
      const body = {
        name: `action-${++names}`,
        code: code("one"),
        active: true,
        environment: "client",
        triggers: ON_PAGE_VIEW,
        ...more,
      };
      const created = await getService().rest("POST", actions(), { body });
      expect(created.http).to.equal(201);
      return created.body.action.id;
    },

    update: (id: number, body: object) => getService().rest("PUT", `${actions()}/${id}`, { body }),

    /** Copies the draft's row to a live version in the database, so that the test needs no publish request. */
    async publish(id: number): Promise<number> {
      const [row] = await getService().db.query(
        `INSERT INTO action (app_id, master_id, name, code, active, environment, triggers, assets)
         SELECT app_id, id, name, code, active, environment, triggers, assets FROM action WHERE id = $1 RETURNING id`,
        [id],
      );
      return row.id;
    },
  };
}
