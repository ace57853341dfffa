/**
 * Sends IDs of another app's resources in requests to the caller's own app. Tests each route and field that takes an ID, for each kind of
 * caller. No response may contain data of the other app, and none of its data may change.
 */
import { expect } from "chai";
import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLOutputType,
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
} from "graphql";
import { loadSchema } from "../../src/api/graphql/schema.js";
import { ROUTES } from "../../src/api/rest/routes.js";
import { rows } from "../../src/data/database.js";
import { sampleOf } from "../harness/samples.js";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { issueTaskToken } from "../harness/task-token.js";

const CANARY = "CANARY-of-another-app";
const CALLERS = ["editor", "api", "task", "viewer", "live"] as const;
const CODE = `async function execute() { return "${CANARY}"; }`;

/** IDs of the other app's resources, by kind of resource. */
type Ids = Record<
  | "action"
  | "actionVersion"
  | "appVersion"
  | "run"
  | "source"
  | "sourceVersion"
  | "entry"
  | "folder"
  | "file"
  | "message"
  | "notification"
  | "alert"
  | "token"
  | "organization"
  | "person"
  | "invitation"
  | "promotion",
  number
>;

describe("IDs of another app", () => {
  let service: TestService;
  let ids: Ids;
  let other: number;
  const tokens = new Map<string, string>();

  const post = async (path: string, body: unknown = {}) => {
    const answer = await service.rest("POST", path, { as: "admin", body });
    expect(answer.http, `${path}: ${JSON.stringify(answer.body)}`).to.be.below(300);
    return answer.body;
  };

  async function fillOther(): Promise<Ids> {
    const v1 = `/v1/apps/${other}`;
    await post(`${v1}/publish`);
    const manual = { active: true, triggers: [{ trigger: "manual" }], code: CODE };
    const { action } = await post(`/v3/apps/${other}/actions`, { name: CANARY, ...manual });
    await post(`/v3/apps/${other}/actions/${action.id}/publish`);
    const { dataSource } = await post(`${v1}/data-sources`, { name: CANARY, columns: ["a"], entries: [{ a: CANARY }] });
    const { version } = await post(`${v1}/versions`);
    const { folder } = await post(`${v1}/media/folders`, { name: CANARY });
    const form = new FormData();
    form.append("file", new Blob([CANARY], { type: "text/plain" }), `${CANARY}.txt`);
    const upload = await fetch(`${service.url}${v1}/media/files?folderId=${folder.id}`, {
      method: "POST",
      headers: { "auth-token": tokens.get("admin")! },
      body: form,
    });
    const [file] = ((await upload.json()) as { files: { id: number }[] }).files;
    const message = await post(`${v1}/communicate/email`, {
      to: [{ email: "a@example.com" }],
      subject: CANARY,
      text: CANARY,
    });
    const notification = await post(`${v1}/notifications`, { status: "published", data: { title: CANARY } });
    const { alert } = await post(`${v1}/alerts`, {
      name: CANARY,
      condition: "failed",
      channel: "email",
      to: ["a@example.com"],
    });
    const token = await post(`${v1}/tokens`, { kind: "api", name: CANARY });
    const idIn = async (table: string, condition = "app_id = $1") =>
      (
        await rows<{ id: number }>(service.db, `SELECT id FROM ${table} WHERE ${condition} ORDER BY id DESC LIMIT 1`, [
          other,
        ])
      )[0]!.id;
    const { organization } = await post("/v1/organizations", { name: CANARY });
    const personFields = { firstName: CANARY, lastName: CANARY, email: `${CANARY}@example.com` };
    const { user } = await post("/v1/admin/users", { ...personFields, organizationId: organization.id });
    const invited = { email: `invited${CANARY}@example.com`, role: "reader" };
    const { invitation } = await post(`/v1/organizations/${organization.id}/invitations`, invited);
    await service.db.query(
      `INSERT INTO run (app_id, action_id, copy, trigger, payload, state) VALUES ($1, $2, 'master', 'manual', $3, 'queued')`,
      [other, action.id, JSON.stringify({ text: CANARY })],
    );
    await service.db.query("INSERT INTO promotion (app_id, plan, before, after) VALUES ($1, $2, $3, $3)", [
      other,
      JSON.stringify({ text: CANARY }),
      Buffer.from(CANARY),
    ]);
    return {
      action: action.id,
      actionVersion: await idIn(
        "action_version",
        "action_id = (SELECT max(id) FROM action WHERE app_id = $1 AND master_id IS NULL)",
      ),
      appVersion: version.id,
      run: await idIn("run"),
      source: dataSource.id,
      sourceVersion: dataSource.id,
      entry: await idIn("data_source_entry", "data_source_id = (SELECT max(id) FROM data_source WHERE app_id = $1)"),
      folder: folder.id,
      file: file!.id,
      message: message.id,
      notification: notification.id,
      alert: alert.id,
      token: token.id,
      organization: organization.id,
      person: user.id,
      invitation: invitation.id,
      promotion: await idIn("promotion"),
    };
  }

  /** SQL query that returns a digest of the other app's rows for each table with the column `app_id`, except `rate_window`. */
  let digests: string;
  async function createDigests(): Promise<string> {
    const tables = await rows<{ name: string }>(
      service.db,
      `SELECT table_name AS name FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
        WHERE table_schema = current_schema() AND column_name = 'app_id' AND table_type = 'BASE TABLE' AND table_name <> 'rate_window'`,
      [],
    );
    return tables
      .map(
        ({ name }) =>
          `SELECT '${name}' AS name, md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), '')) AS digest FROM ${name} t WHERE app_id = $1`,
      )
      .join(" UNION ALL ");
  }

  async function stateOfOther(): Promise<Record<string, string>> {
    const found = await rows<{ name: string; digest: string }>(service.db, digests, [other]);
    return Object.fromEntries(found.map(({ name, digest }) => [name, digest]));
  }

  before(async () => {
    service = await useSharedService("api");
    digests = await createDigests();
    for (const [kind, token] of Object.entries(service.tokens)) tokens.set(kind, token);
    tokens.set("task", await issueTaskToken(service.db, service.appId));
    await post(`/v1/apps/${service.appId}/publish`);
    const { app } = await post("/v1/admin/apps", { name: CANARY });
    other = app.id;
    ids = await fillOther();
  });
  after(() => service.stop());

  /** Returns the IDs of the other app's resources to which a parameter or argument with this name can refer. */
  function idsOfParameter(parameter: string, where: string): number[] {
    const {
      action,
      actionVersion,
      appVersion,
      run,
      source,
      sourceVersion,
      entry,
      folder,
      file,
      message,
      notification,
      alert,
      token,
      organization,
      person,
      invitation,
      promotion,
    } = ids;
    const byName: Record<string, number[]> = {
      actionId: [action],
      nameOrId: [action],
      runId: [run],
      before: [run],
      ds: [source],
      dataSourceId: [source],
      entryId: [entry],
      messageId: [message],
      notificationId: [notification],
      alertId: [alert],
      tokenId: [token],
      promotionId: [promotion],
      stageAppId: [other],
      sessionId: [token],
      organizationId: [organization],
      userId: [person],
      invitationId: [invitation],
      passkeyId: [token],
      identityId: [token],
      fileId: [file],
      folderId: [folder],
      parentId: [folder],
      versionId: [/action/i.test(where) ? actionVersion : /data-?source/i.test(where) ? sourceVersion : appVersion],
    };
    if (parameter in byName) return byName[parameter]!;
    if (parameter !== "id") return [];
    if (/folder/i.test(where)) return [folder];
    if (/file|mediaLink/i.test(where)) return [file];
    if (/entry/i.test(where)) return [entry];
    if (/dataSource/i.test(where)) return [source];
    if (/alert/i.test(where)) return [alert];
    if (/notification/i.test(where)) return [notification];
    if (/message/i.test(where)) return [message];
    if (/token/i.test(where)) return [token];
    if (/invitation/i.test(where)) return [invitation];
    return [action];
  }

  /** Returns all combinations of the parameters' values. */
  function parameterValues(parameters: readonly string[], where: string): Record<string, number>[] {
    return parameters.reduce<Record<string, number>[]>(
      (filled, parameter) =>
        filled.flatMap((parameterIds) =>
          idsOfParameter(parameter, where).map((id) => ({ ...parameterIds, [parameter]: id })),
        ),
      [{}],
    );
  }

  for (const [routeIndex, { method, path }] of ROUTES.entries()) {
    const parameters = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!).filter((name) => name !== "appId");
    const named = parameters.filter((name) => name !== "name" && name !== "columns");
    if (named.length === 0) continue;
    it(`${method} ${path} neither shows nor changes anything of another app`, async () => {
      const before = await stateOfOther();
      const all = parameterValues(named, path);
      expect(all).to.not.have.length(0);
      for (const [index, parameterIds] of all.entries()) {
        const filled = path.replace(/:(\w+)/g, (_, name) =>
          String(name === "appId" ? service.appId : (parameterIds[name] ?? "a")),
        );
        for (const kind of sampleOf(CALLERS, routeIndex + index, 3)) {
          const body = method === "GET" ? undefined : {};
          const { http, body: answer } = await service.rest(method, filled, { as: tokens.get(kind)!, body });
          expect(http, `${kind} ${filled} ${JSON.stringify(answer)}`).to.be.within(400, 499);
          expect(JSON.stringify(answer), `${kind} ${filled}`).to.not.include(CANARY);
        }
      }
      expect(await stateOfOther()).to.deep.equal(before);
    });
  }

  it("are rejected by every query and mutation that takes one", async () => {
    const schema = await loadSchema();
    const before = await stateOfOther();
    let fieldCount = 0;
    let calls = 0;
    const faults: string[] = [];
    for (const [operation, type] of [
      ["query", schema.getQueryType()!],
      ["mutation", schema.getMutationType()!],
    ] as const) {
      for (const field of Object.values(type.getFields())) {
        const parameters = field.args
          .map(({ name }) => name)
          .filter((name) => idsOfParameter(name, field.name).length > 0);
        if (parameters.length === 0) continue;
        for (const parameterIds of parameterValues(parameters, field.name)) {
          calls += 1;
          const text = `${operation} { ${callOf(field, service.appId, parameterIds)} }`;
          for (const kind of sampleOf(CALLERS, calls, 2)) {
            fieldCount += 1;
            const { data, errors } = await service.graphql(text, {}, { as: tokens.get(kind)! });
            const answer = JSON.stringify({ data, errors });
            if (answer.includes(CANARY)) faults.push(`${kind} ${text}: ${answer}`);
            if (errors?.[0].extensions.status === "INTERNAL_ERROR") faults.push(`${kind} ${text}: ${answer}`);
            if (errors?.[0].extensions.code === "GRAPHQL_VALIDATION_FAILED") faults.push(`${text}: ${answer}`);
          }
        }
      }
    }
    expect(faults).to.deep.equal([]);
    expect(fieldCount).to.be.above(200);
    expect(await stateOfOther()).to.deep.equal(before);
  });
});

function literalOf({ type }: GraphQLArgument): string {
  const inner = getNullableType(type);
  if (isListType(inner)) return "[]";
  if (isInputObjectType(inner)) return "{}";
  if (isEnumType(inner)) return inner.getValues()[0]!.name;
  return { Int: "1", Boolean: "true", JSON: "{}" }[String(inner)] ?? '"1"';
}

function callOf(field: GraphQLField<unknown, unknown>, appId: number, parameterIds: Record<string, number>): string {
  const argumentTexts = field.args.flatMap((arg) => {
    if (arg.name === "appId") return [`appId: ${appId}`];
    if (arg.name in parameterIds) return [`${arg.name}: ${parameterIds[arg.name]}`];
    return isNonNullType(arg.type) ? [`${arg.name}: ${literalOf(arg)}`] : [];
  });
  return `${field.name}(${argumentTexts.join(", ")}) ${selectionOf(field.type, 3)}`;
}

function selectionOf(type: GraphQLOutputType, levels: number): string {
  const named = getNamedType(type);
  if (!isObjectType(named)) return "";
  const fields = Object.values(named.getFields()).flatMap((field) => {
    if (field.args.some((arg) => isNonNullType(arg.type))) return [];
    const isLeaf = !isObjectType(getNamedType(field.type));
    if (isLeaf) return [field.name];
    return levels > 1 ? [`${field.name} ${selectionOf(field.type, levels - 1)}`] : [];
  });
  return fields.length > 0 ? `{ ${fields.join(" ")} }` : "{ __typename }";
}
