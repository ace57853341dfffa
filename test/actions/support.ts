import { rows } from "../../src/data/database.js";
import type { TestService } from "../harness/service.js";
import type { ApiClient } from "./api-clients.js";

export const CODE = "async function execute(context) {\n  return 1;\n}";

let names = 0;

export function newName(stem = "action"): string {
  names += 1;
  return `${stem}-${names}`;
}

export const validAction = (changes: object = {}): Record<string, unknown> => ({
  name: newName(),
  code: CODE,
  ...changes,
});

// biome-ignore lint/suspicious/noExplicitAny: an action has no static type here
export async function make(apiClient: ApiClient, changes: object = {}): Promise<any> {
  const { status, error, value } = await apiClient.create(validAction(changes));
  if (status !== "OK") throw new Error(`create of an action failed: ${status}: ${error}`);
  return value;
}

/** Inserts a legacy V2 action. No API operation can create one. */
export async function insertLegacy({ db, appId }: TestService, name = newName("legacy")): Promise<number> {
  const [row] = await rows<{ id: number }>(
    db,
    `INSERT INTO action (app_id, name, code, environment, action_version, active, triggers)
     VALUES ($1, $2, '', 'server', 'v2', true, '[{"trigger":"manual"}]') RETURNING id`,
    [appId, name],
  );
  return row!.id;
}

export async function publishApp({ rest, appId }: TestService): Promise<void> {
  await rest("POST", `/v1/apps/${appId}/publish`);
}

export async function count({ db }: TestService, table: string, where: string, parameters: unknown[]): Promise<number> {
  const [row] = await rows<{ count: number }>(db, `SELECT count(*) FROM ${table} WHERE ${where}`, parameters);
  return row!.count;
}
