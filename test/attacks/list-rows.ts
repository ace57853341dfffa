/** Creates an app, its callers, and rows that are hidden from these callers. */
import { rows } from "../../src/data/database.js";
import { generateToken, hashToken } from "../../src/operations/access/tokens.js";
import type { TestService } from "../harness/service.js";
import { mediaOf } from "../media/support.js";
import { COLUMN_SOURCE, HIDDEN_TEXT, VISIBLE_TEXT } from "./list-requests.js";
import { addNumberedApp, PUSH_KEYS } from "./numbered-app.js";

/** ID of the callers' app, its organization and all its resources. */
export const OWN_ID = 4001;
/** ID of an app in which the callers have no role, and of its organization and all its resources. */
export const HIDDEN_ID = 5001;

const READABLE = [{ type: ["read"], allow: "all" }];
/** Rule that shows only the entries with the owner "all", without the column Secret. */
const ENTRY_RULES = [{ type: ["select"], allow: "all", exclude: ["Secret"], require: [{ Owner: { equals: "all" } }] }];
const USER_HOOKS = [{ type: "operations", runOn: ["insert", "update"], fields: { Password: ["hash"] } }];
const USER = { Email: "ada@example.org", Password: "seven lamps of the harbour" };

export interface ListCallers {
  /** Token of an administrator, who sees the rows of both apps. */
  admin: string;
  /** Tokens of callers who see only the rows that the app's access rules allow. null: no token. */
  visitors: Record<string, string | null>;
  /** People and programs with a role on the app. They see all rows of this app and none of other apps. */
  members: Record<string, string>;
  /** Owner of the app's organization, who sees all apps of this organization. */
  owner: string;
}

export type HiddenRows = ReturnType<typeof createHiddenRows>;

export function createHiddenRows(service: TestService) {
  const { db } = service;

  async function send(as: string, method: string, path: string, body: unknown) {
    const answer = await service.rest(method, path, { as, body });
    if (answer.http >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  async function addAccount(token: string, mark: string): Promise<void> {
    const [{ id, personId }] = (await rows<{ id: number; personId: number }>(
      db,
      `SELECT id, person_id AS "personId" FROM credential WHERE hash = $1`,
      [hashToken(token)],
    )) as [{ id: number; personId: number }];
    await db.query("INSERT INTO person_session (credential_id, person_id, device) VALUES ($1, $2, $3)", [
      id,
      personId,
      mark,
    ]);
    await db.query(
      `INSERT INTO passkey (person_id, credential_id, public_key, counter, transports, name) VALUES ($1, $2, '', 0, '[]', $2)`,
      [personId, mark],
    );
    await db.query(
      "INSERT INTO person_identity (person_id, issuer, subject, provider, manages_roles) VALUES ($1, $2, $2, $2, false)",
      [personId, mark],
    );
  }

  /** Adds a person with a role on an app, or an owner of the organization. Returns the token of the person's session. */
  async function addMember(
    role: "reader" | "operator" | "editor" | "owner",
    id: number,
    mark: string,
  ): Promise<string> {
    const [person] = await rows<{ id: number }>(
      db,
      `INSERT INTO person (organization_id, first_name, last_name, email) VALUES ($1, $2, $2, $2 || '@members.example') RETURNING id`,
      [id, `${role}.${mark}`],
    );
    const tables = {
      editor: "app_editor (app_id, person_id) VALUES ($1, $2)",
      owner: "organization_member (organization_id, person_id, role) VALUES ($1, $2, 'owner')",
    };
    const ofApp = `app_member (app_id, person_id, role) VALUES ($1, $2, '${role}')`;
    const table = role === "editor" || role === "owner" ? tables[role] : ofApp;
    await db.query(`INSERT INTO ${table}`, [id, person!.id]);
    const token = generateToken("editor");
    await db.query(
      "INSERT INTO credential (kind, hash, person_id, expires_at) VALUES ('editor', $1, $2, now() + interval '1 day')",
      [hashToken(token), person!.id],
    );
    await addAccount(token, `${mark} ${role}`);
    return token;
  }

  /** Adds rows that the API returns without an ID. */
  async function addRowsWithoutId(admin: string, id: number, mark: string): Promise<void> {
    const app = `/v1/apps/${id}`;
    await send(admin, "PUT", `${app}/origins`, { origins: [`https://${mark}.example`] });
    const binding = { key: `_${mark}`, origin: `https://${mark}.example`, in: "header", name: "X-Key" };
    await send(admin, "PUT", `${app}/secret-bindings`, { bindings: [binding] });
    await db.query("INSERT INTO http_refusal VALUES ($1, 'FORBIDDEN', $2, 1, now(), NULL)", [id, mark]);
    await db.query(
      `INSERT INTO run (app_id, action_id, copy, trigger, payload, state) VALUES ($1, $1, 'master', 'manual', '{}', 'queued')`,
      [id],
    );
    const code = `const execute = async ({ settings }) => settings["_${mark}"]`;
    const scheduled = { active: true, triggers: [{ trigger: "schedule" }], frequency: "0 3 * * *", timezone: "UTC" };
    const { action } = await send(admin, "POST", `/v3/apps/${id}/actions`, {
      name: `${mark}-scheduled`,
      code,
      ...scheduled,
    });
    await send(admin, "POST", `/v3/apps/${id}/actions/${action.id}/publish`, {});
  }

  async function addPages(admin: string): Promise<Record<string, string | null>> {
    const app = `/v1/apps/${OWN_ID}`;
    const newPage = async (kind: string): Promise<string> =>
      (await send(admin, "POST", `${app}/tokens`, { kind })).token;
    const users = { name: "Users", hooks: USER_HOOKS, isUsers: true };
    await send(admin, "POST", `${app}/data-sources`, users);
    await send(admin, "POST", `${app}/data-sources/Users/entries`, { data: USER });
    const user = await newPage("live");
    await send(user, "POST", `${app}/session`, { dataSourceId: "Users", where: USER });
    return { anonymous: null, live: await newPage("live"), viewer: await newPage("viewer"), user };
  }

  async function addContent(
    admin: string,
    name: string,
    { owner, rules, scope }: { owner: string; rules: object[] | null; scope: object | null },
  ): Promise<void> {
    const app = `/v1/apps/${OWN_ID}`;
    const media = mediaOf({ ...service, appId: OWN_ID }, admin);
    await send(admin, "POST", `${app}/data-sources/${OWN_ID}/entries`, {
      data: { Owner: owner, Name: name, Secret: `${HIDDEN_TEXT} ${name}` },
    });
    for (const folderId of [null, OWN_ID]) {
      const { id } = await media.upload(name, "x", folderId === null ? {} : { folderId: String(folderId) });
      const folder = await media.folder(name, folderId ?? undefined);
      if (rules === null) continue;
      await media.rest("PUT", `/files/${id}/accessRules`, rules);
      await media.rest("PUT", `/folders/${folder}/accessRules`, rules);
    }
    const notification = { status: "published", data: { title: name }, ...(scope && { scope }) };
    await send(admin, "POST", `${app}/notifications`, notification);
  }

  return {
    async addOwnApp(): Promise<ListCallers> {
      const admin = await addNumberedApp(service, OWN_ID, VISIBLE_TEXT);
      const app = `/v1/apps/${OWN_ID}`;
      await addRowsWithoutId(admin, OWN_ID, VISIBLE_TEXT);
      await send(admin, "PUT", `${app}/data-sources/${OWN_ID}`, { accessRules: ENTRY_RULES });
      await send(admin, "PUT", `${app}/media/folders/${OWN_ID}/accessRules`, READABLE);
      for (const name of ["b", "d"]) {
        await addContent(admin, `${name} ${VISIBLE_TEXT}`, { owner: "all", rules: READABLE, scope: null });
      }
      const columnRules = [{ type: ["select"], allow: "all", exclude: ["Secret"] }];
      const entries = ["b", "a"].map((Name) => ({ Owner: "all", Name }));
      const columns = ["Owner", "Name", "Secret"];
      await send(admin, "POST", `${app}/data-sources`, {
        name: COLUMN_SOURCE,
        columns,
        entries,
        accessRules: columnRules,
      });
      const members: Record<string, string> = {};
      for (const role of ["editor", "reader", "operator"] as const) {
        members[role] = await addMember(role, OWN_ID, VISIBLE_TEXT);
      }
      members["api"] = (await send(admin, "POST", `${app}/tokens`, { kind: "api" })).token;
      const owner = await addMember("owner", OWN_ID, VISIBLE_TEXT);
      return { admin, visitors: await addPages(admin), members, owner };
    },

    /** Creates an app of another organization, with rows of every kind. @returns tokens of people who see these rows */
    async addHiddenApp(): Promise<Record<string, string>> {
      const admin = await addNumberedApp(service, HIDDEN_ID, HIDDEN_TEXT);
      await addRowsWithoutId(admin, HIDDEN_ID, HIDDEN_TEXT);
      const path = `/v1/apps/${HIDDEN_ID}/data-sources/${HIDDEN_ID}/entries`;
      await send(admin, "POST", path, { data: { Owner: "all", Name: HIDDEN_TEXT } });
      return { admin, owner: await addMember("owner", HIDDEN_ID, HIDDEN_TEXT) };
    },

    /** Adds an app to the callers' organization. Members of the callers' app do not see it. The owner of the organization does. */
    async addSiblingApp(): Promise<void> {
      await db.query("INSERT INTO app (organization_id, name) VALUES ($1, $2)", [OWN_ID, HIDDEN_TEXT]);
    },

    async addHiddenContent(admin: string): Promise<void> {
      for (const [at, name] of ["a", "c", "e"].entries()) {
        const scope = { email: "x@example.org" };
        const owner = at === 0 ? "x" : "y";
        await addContent(admin, `${name} ${HIDDEN_TEXT}`, { owner, rules: [], scope });
      }
      const app = `/v1/apps/${OWN_ID}`;
      const { entries } = await send(admin, "POST", `${app}/data-sources/${COLUMN_SOURCE}/query`, {});
      for (const [at, { id }] of (entries as { id: number }[]).entries()) {
        const path = `${app}/data-sources/${COLUMN_SOURCE}/entries/${id}`;
        await send(admin, "PUT", path, { Secret: `${HIDDEN_TEXT} ${at}` });
      }
      await send(admin, "POST", `${app}/data-sources`, { name: HIDDEN_TEXT, entries: [{ Name: HIDDEN_TEXT }] });
      await send(admin, "POST", `${app}/notifications`, { status: "draft", data: { title: HIDDEN_TEXT } });
      const endpoint = `https://push.example.net/${HIDDEN_TEXT}-device`;
      await send(admin, "POST", `${app}/push/subscriptions`, { endpoint, keys: PUSH_KEYS });
      await send(admin, "POST", `${app}/settings`, { [`_${HIDDEN_TEXT}`]: HIDDEN_TEXT });
    },
  };
}
