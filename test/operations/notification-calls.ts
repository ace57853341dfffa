/** Calls the REST routes of notifications in tests, as an app's backend and as its users. */
import { rows } from "../../src/data/database.js";
import { hashToken } from "../../src/operations/access/tokens.js";
import type { TestService } from "../harness/service.js";

export interface NotificationEntry {
  id: number;
  cursor: number | null;
  readStatus: boolean;
  data: { title?: string };
  status: string;
}

/** Creates functions that call the routes for the app of the service. `as` is a kind of credential or a token. */
export function createNotificationCalls(service: () => TestService) {
  const call = async (method: string, path: string, body?: unknown, as = "api") =>
    (await service().rest(method, `/v1/apps/${service().appId}/notifications${path}`, { body, as })).body;
  const insert = (body: object): Promise<NotificationEntry> => call("POST", "", body);
  return {
    call,
    insert,
    published: (title: string, more: object = {}) => insert({ status: "published", data: { title }, ...more }),
    /** Returns the titles of the notifications that the caller may read, newest first. */
    titles: async (as: string) =>
      ((await call("GET", "", undefined, as)).entries as NotificationEntry[]).map(({ data }) => data.title),
    viewer: async () => {
      const select = "SELECT person.id, email FROM person JOIN credential ON person_id = person.id WHERE hash = $1";
      const { db, tokens } = service();
      return (await rows<{ id: number; email: string }>(db, select, [hashToken(tokens.viewer)]))[0]!;
    },
  };
}
