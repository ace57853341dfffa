/** Creates an app with resources of many kinds. All resources, the app and its organization have the same ID. */
import type { Db } from "../../src/data/database.js";
import { generateToken, hashToken } from "../../src/operations/access/tokens.js";
import { createLogData } from "../harness/log-entries.js";
import type { TestService } from "../harness/service.js";

/** Keys of a valid push subscription. */
export const PUSH_KEYS = {
  p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
  auth: "BTBZMqHH6r4Tts7J_aSIgg",
};

async function setNextIds(db: Db, number: number, tables: readonly string[]): Promise<void> {
  for (const table of tables) {
    const sequence = `coalesce(pg_get_serial_sequence('${table}', 'id'), '${table}_id_seq')`;
    await db.query(`SELECT setval(${sequence}, $1, false)`, [number]);
  }
}

async function insert(db: Db, table: string, values: object): Promise<void> {
  const placeholders = Object.keys(values).map((_, index) => `$${index + 1}`);
  await db.query(`INSERT INTO ${table} (${Object.keys(values)}) VALUES (${placeholders})`, Object.values(values));
}

async function addHistory(db: Db, number: number, mark: string): Promise<void> {
  const app = { app_id: number };
  await setNextIds(db, number, ["run", "execution_log", "log_event", "alert_delivery", "data_source_change"]);
  const about = { action_id: number, person_id: number, version_id: number, copy: "master", trigger: "manual" };
  const now = new Date();
  await insert(db, "run", { ...app, ...about, payload: { mark }, state: "completed", finished_at: now });
  await insert(db, "console_line", { run_id: number, seq: 0, level: "log", at: now, text: mark });
  const entry = { task_id: number, run_id: number, type: "app.task.completed", data: createLogData({ mark }) };
  await insert(db, "execution_log", { ...app, ...entry });
  const request = { request_id: "00000000-0000-4000-8000-000000000000", run_id: number };
  await insert(db, "log_event", { ...app, ...request, type: "x", data: { mark }, data_source_id: number });
  const delivery = { rule_id: number, channel: "email", body: { text: mark }, status: "sent", give_up_at: now };
  await insert(db, "alert_delivery", { ...app, ...delivery });
  const change = { data_source_id: number, bulk: false, inserted: [number], replaced: "[]" };
  await insert(db, "data_source_change", { ...app, ...change });
}

async function addAccess(db: Db, number: number, mark: string): Promise<void> {
  await setNextIds(db, number, ["one_time_link", "invitation", "oauth_grant", "promotion"]);
  const app = { app_id: number };
  const link = { kind: "invitation", hash: Buffer.from(mark), expires_at: new Date(Date.now() + 3_600_000) };
  await insert(db, "one_time_link", link);
  const invitation = {
    ...app,
    link_id: number,
    organization_id: number,
    email: `new-${mark}@example.net`,
    role: "editor",
  };
  await insert(db, "invitation", invitation);
  await insert(db, "oauth_client", { id: mark, name: mark, redirect_uris: "[]", grant_types: "[]" });
  await insert(db, "oauth_grant", { ...app, client_id: mark, person_id: number, scopes: ["read"] });
  const plan = { created: [], changed: [], removed: [] };
  const promotion = { plan, before: Buffer.from(mark), after: Buffer.from(mark) };
  await insert(db, "promotion", { ...app, ...promotion });
}

/**
 * Creates the app.
 * @param number ID of the app and its resources; larger than any existing ID
 * @param mark text that is a part of all texts of the app
 * @returns token of the app's administrator
 */
export async function addNumberedApp(service: TestService, number: number, mark: string): Promise<string> {
  const { db } = service;
  const token = generateToken("admin");
  const email = `${mark}@example.net`;

  async function send(path: string, body: unknown, ...tables: string[]): Promise<void> {
    await setNextIds(db, number, tables);
    const full = `/${path.replace(":app", `apps/${number}`)}`;
    const { http, body: answer } = await service.rest("POST", full, { as: token, body });
    if (http >= 300) throw new Error(`${path}: ${JSON.stringify(answer)}`);
  }

  await setNextIds(db, number, ["organization", "person", "app"]);
  await insert(db, "organization", { name: mark });
  await insert(db, "person", { organization_id: number, first_name: mark, last_name: mark, email });
  await insert(db, "app", { organization_id: number, name: mark });
  await insert(db, "credential", { kind: "admin", hash: hashToken(token), person_id: number });

  await send("v1/:app/editors", { userId: number });
  await send("v1/:app/tokens", { kind: "api", name: mark }, "credential");
  await send("v1/:app/settings", { [mark]: mark, [`_${mark}`]: `a secret of ${mark}` }, "audit_entry");
  const source = { name: mark, columns: ["Name"], entries: [{ Name: mark }] };
  // The import below creates another entry, which gets the ID `number`. So the first entry gets the ID before it.
  await setNextIds(db, number - 1, ["data_source_entry"]);
  await send("v1/:app/data-sources", source, "data_source");
  await send(`v1/:app/data-sources/${number}/import`, [{ Name: mark }], "data_source_version");
  const code = `const execute = async () => "${mark}"`;
  await send("v3/:app/actions", { name: mark, code, description: mark }, "action", "action_version");
  await send("v1/:app/publish", {});
  await send(`v3/:app/actions/${number}/publish`, {});
  const preset =
    "mutation ($app: Int!, $mark: String!) { savePayloadPreset(appId: $app, actionId: $app, name: $mark, payload: {}) { name } }";
  await service.graphql(preset, { app: number, mark }, { as: token });
  await send("v1/:app/versions", {}, "app_version");
  const rule = { name: mark, condition: "failed", channel: "email", to: [email], actionId: number };
  await send("v1/:app/alerts", rule, "alert_rule");
  await send("v1/:app/media/folders", { name: mark }, "media_folder");
  const message = { to: [{ email }], subject: mark, text: mark };
  await send("v1/:app/communicate/email", message, "message");
  await send("v1/:app/notifications", { data: { mark }, status: "published" }, "notification");
  const device = { endpoint: `https://push.example.net/${mark}`, keys: PUSH_KEYS };
  await send("v1/:app/push/subscriptions", device, "push_subscription");
  await setNextIds(db, number, ["media_file"]);
  const form = new FormData();
  form.append("file", new Blob([mark], { type: "text/plain" }), `${mark}.txt`);
  const files = `${service.url}/v1/apps/${number}/media/files`;
  await fetch(files, { method: "POST", headers: { "auth-token": token }, body: form });
  await addAccess(db, number, mark);
  await addHistory(db, number, mark);
  return token;
}
