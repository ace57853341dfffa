/** Checks through the API that each operation permits the callers that the access table permits, and that the table covers all routes. */
import { expect } from "chai";
import {
  type GraphQLArgument,
  getNamedType,
  getNullableType,
  isCompositeType,
  isInputObjectType,
  isListType,
  isNonNullType,
} from "graphql";
import { loadSchema } from "../../src/api/graphql/schema.js";
import { ROUTES } from "../../src/api/rest/routes.js";
import { rows } from "../../src/data/database.js";
import { generateToken, hashToken } from "../../src/operations/access/tokens.js";
import {
  ACCESS_TABLE,
  type CallerRole,
  isOperationAllowedForRole,
  type Operation,
  TOKEN_SCOPES,
  type TokenScope,
} from "../../src/rules/access.js";
import { ROLES } from "../../src/rules/roles.js";
import { sampleOf } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { PEOPLE_ROUTES, peopleSample, SAMPLES } from "./access-samples.js";

/** Operations without an app. */
const OPERATIONS_WITHOUT_APP: readonly Operation[] = [
  "listApps",
  "manageOwnAccount",
  "listOrganizations",
  "createOrganization",
  "manageAdministrators",
];
/** Operations on an organization. A role on one of the organization's apps gives no right to these operations. */
const ORGANIZATION_OPERATIONS: readonly Operation[] = ["readOrganization", "manageOrganization"];

const OPERATIONS = Object.keys(ACCESS_TABLE) as Operation[];
const REFUSALS = ["UNAUTHORIZED", "FORBIDDEN"];

type CallerScope = "own" | "another" | "foreign" | "missing";

const SCOPE_TITLES: Record<CallerScope, string> = {
  own: "the app",
  another: "another app of the organization",
  foreign: "another organization's app",
  missing: "an app that does not exist",
};

interface Owner {
  personId?: number | null;
  scopes?: readonly TokenScope[] | null;
}

/** Caller of the tests. Its role and scopes are those of a column of the access table. */
interface TestCaller {
  name: string;
  /** Role in the access table; null for a person without a role. */
  role: CallerRole | null;
  scopes: readonly TokenScope[] | null;
  /** Apps on which the caller has the rights of its role (see SCOPE_TITLES). Not used for the administrator, who has rights on all apps. */
  reachableScopes: readonly CallerScope[];
  token: string;
  /** True for a session of a signed-in person. Only such a caller can manage an account. */
  isSession?: true;
}

describe("the access matrix", () => {
  let service: TestService;
  const callers: TestCaller[] = [];
  const apps: Record<CallerScope, number> = { own: 0, another: 0, foreign: 0, missing: 2_000_000_000 };
  const organizations: Record<CallerScope, number> = { ...apps };
  const scopeOfApp = (appId: number) => (Object.keys(apps) as CallerScope[]).find((scope) => apps[scope] === appId)!;

  async function insert(sql: string, parameters: unknown[]): Promise<number> {
    const [row] = await rows<{ id: number }>(service.db, `${sql} RETURNING id`, parameters);
    return row!.id;
  }

  /** Inserts a credential and returns its token. */
  async function insertCredential(
    kind: "editor" | "task" | "api",
    { personId = null, scopes = null }: Owner,
  ): Promise<string> {
    const token = generateToken(kind);
    const appId = kind === "editor" ? null : apps.own;
    const values = [kind, hashToken(token), appId, personId, scopes];
    await insert("INSERT INTO credential (kind, hash, app_id, person_id, scopes) VALUES ($1, $2, $3, $4, $5)", values);
    return token;
  }

  async function person(name: string): Promise<{ personId: number; token: string }> {
    const sql =
      "INSERT INTO person (organization_id, first_name, last_name, email) VALUES ($1, $2, 'Test', $2 || '@example.com')";
    const personId = await insert(sql, [service.organizationId, name]);
    return { personId, token: await insertCredential("editor", { personId }) };
  }

  /** Inserts a queued run that was started with this token. Some callers can cancel only their own runs. */
  async function insertQueuedRun(token: string): Promise<number> {
    return insert(
      `INSERT INTO run (app_id, action_id, copy, trigger, payload, state, credential_id)
       SELECT $1, 1, 'master', 'manual', '{}', 'queued', id FROM credential WHERE hash = $2`,
      [apps.own, hashToken(token)],
    );
  }

  /**
   * Sends the sample call of the operation. Returns "passed" if the service permits the call, even if the call then fails. Otherwise returns
   * the status of the error: UNAUTHORIZED, FORBIDDEN, or APP_NOT_FOUND for the missing app.
   */
  async function sendSampleCall(operation: Operation, token: string | null, appId: number): Promise<string> {
    const runId = token && operation === "cancelRun" ? await insertQueuedRun(token) : 1;
    const organizationId = organizations[scopeOfApp(appId)];
    const status = await SAMPLES[operation](service, { token, organizationId, appId, runId });
    expect(status, "the service must not fail").to.not.equal("INTERNAL_ERROR");
    // The access rules of a data source decide about callers that the access table refuses. Here they grant nothing, so they refuse too.
    if (status === "DATA_SOURCE_ACCESS_DENIED") return "FORBIDDEN";
    if (appId === apps.missing && status === "APP_NOT_FOUND") return status;
    return status !== null && REFUSALS.includes(status) ? status : "passed";
  }

  function expected(
    operation: Operation,
    { role, scopes, reachableScopes, name }: TestCaller,
    scope: CallerScope,
  ): string {
    if (OPERATIONS_WITHOUT_APP.includes(operation)) {
      return isOperationAllowedForRole(operation, role ?? "reader", scopes) ? "passed" : "FORBIDDEN";
    }
    if (role === null || !isOperationAllowedForRole(operation, role, scopes)) return "FORBIDDEN";
    if (ORGANIZATION_OPERATIONS.includes(operation)) {
      if (name === "administrator") return "passed";
      return reachableScopes.includes("another") && reachableScopes.includes(scope) ? "passed" : "FORBIDDEN";
    }
    if (name === "administrator") return scope === "missing" ? "APP_NOT_FOUND" : "passed";
    return reachableScopes.includes(scope) ? "passed" : "FORBIDDEN";
  }

  before(async () => {
    service = await startTestService({ ROLES: "api", TRUST_PROXY: "1" });
    const { appId, organizationId, tokens } = service;
    const insertApp = "INSERT INTO app (organization_id, name) VALUES ($1, 'other')";
    const elsewhere = await insert("INSERT INTO organization (name) VALUES ($1)", ["Elsewhere"]);
    Object.assign(organizations, { own: organizationId, another: organizationId, foreign: elsewhere });
    apps.own = appId;
    apps.another = await insert(insertApp, [organizationId]);
    apps.foreign = await insert(insertApp, [elsewhere]);
    const add = (name: string, role: CallerRole | null, token: string, more: Partial<TestCaller> = {}) =>
      callers.push({ name, role, token, scopes: null, reachableScopes: ["own"], ...more });
    add("administrator", "administrator", tokens.admin);
    add("the first editor", "editor", tokens.editor);
    for (const kind of ["api", "viewer", "live"] as const) add(kind, kind, tokens[kind]);
    add("task", "task", await insertCredential("task", {}));
    for (const scope of TOKEN_SCOPES)
      add(`api with ${scope}`, "api", await insertCredential("api", { scopes: [scope] }), { scopes: [scope] });
    add("api with no scope at all", "api", await insertCredential("api", { scopes: [] }), { scopes: [] });
    add("a person without a role", null, (await person("nobody")).token);
    for (const role of ROLES) {
      const ofApp = await person(`${role}.app`);
      const table =
        role === "editor"
          ? "app_editor (app_id, person_id) VALUES ($1, $2)"
          : "app_member (app_id, person_id, role) VALUES ($1, $2, $3)";
      const values = role === "editor" ? [appId, ofApp.personId] : [appId, ofApp.personId, role];
      await service.db.query(`INSERT INTO ${table}`, values);
      add(`${role} of the app`, role, ofApp.token);
      const organizationMember = await person(`${role}.organization`);
      const member = "INSERT INTO organization_member (organization_id, person_id, role) VALUES ($1, $2, $3)";
      await service.db.query(member, [organizationId, organizationMember.personId, role]);
      add(`${role} of the organization`, role, organizationMember.token, { reachableScopes: ["own", "another"] });
    }
    const signedIn = await person("signed-in");
    await service.db.query(
      `INSERT INTO person_session (credential_id, person_id, is_provisional, device)
       SELECT id, person_id, false, 'test' FROM credential WHERE person_id = $1`,
      [signedIn.personId],
    );
    await service.db.query("INSERT INTO app_member (app_id, person_id, role) VALUES ($1, $2, 'reader')", [
      appId,
      signedIn.personId,
    ]);
    add("reader of the app by a session", "reader", signedIn.token, { isSession: true });
    const both = await person("both");
    await service.db.query("INSERT INTO app_member (app_id, person_id, role) VALUES ($1, $2, 'reader')", [
      appId,
      both.personId,
    ]);
    await service.db.query("INSERT INTO app_editor (app_id, person_id) VALUES ($1, $2)", [appId, both.personId]);
    add("reader and editor of the app", "editor", both.token);
  });
  after(() => service.stop());

  const SCOPES = ["own", "another", "foreign", "missing"] as const;

  /** In `npm test`, selects two thirds of the callers for their own app, and a sixth for other apps. The long tests use all callers. */
  function sampleOfCallers(index: number, scope: CallerScope): TestCaller[] {
    const first = index + SCOPES.indexOf(scope);
    const sample =
      scope === "own"
        ? [...sampleOf(callers, first, 3), ...sampleOf(callers, first + 1, 3)]
        : sampleOf(callers, first, 6);
    return callers.filter((caller) => sample.includes(caller));
  }

  for (const [index, operation] of OPERATIONS.entries()) {
    it(`${operation} is rejected without a credential`, async () => {
      expect(await sendSampleCall(operation, null, apps.own)).to.equal("UNAUTHORIZED");
    });

    for (const scope of SCOPES) {
      if (OPERATIONS_WITHOUT_APP.includes(operation) && scope !== "own") continue;
      it(`${operation} of ${SCOPE_TITLES[scope]} is only for the callers of its row`, async () => {
        const sample = sampleOfCallers(index, scope);
        const outcomes = sample.map(async ({ name, token }) => [
          name,
          await sendSampleCall(operation, token, apps[scope]),
        ]);
        const found = Object.fromEntries(await Promise.all(outcomes));
        const expectedOutcomes = sample.map((caller) => [caller.name, expected(operation, caller, scope)]);
        expect(found).to.deep.equal(Object.fromEntries(expectedOutcomes));
      });
    }
  }

  const PEOPLE_PATHS =
    /^\/v1\/(?:(?:auth|organizations|admin)\b|apps\/:appId\/(?:members|editors|tokens|origins|audit)\b)/;

  it("the matrix of people has every route of accounts, sessions, members, invitations, tokens, origins and audit logs", () => {
    const routes = ROUTES.filter(({ path, isForAnonymous }) => PEOPLE_PATHS.test(path) && !isForAnonymous);
    expect(Object.keys(PEOPLE_ROUTES)).to.have.members(routes.map(({ method, path }) => `${method} ${path}`));
  });

  /** Returns the expected outcome of a route about people. Only a session can manage an account. */
  function expectedOutcome(route: string, caller: TestCaller, scope: CallerScope): string {
    const [operation, on] = PEOPLE_ROUTES[route]!;
    if (on === "session") return caller.isSession ? "passed" : "FORBIDDEN";
    if (on !== "organization") return expected(operation, caller, scope);
    const { name, role, scopes, reachableScopes } = caller;
    if (role === null || !isOperationAllowedForRole(operation, role, scopes)) return "FORBIDDEN";
    return name === "administrator" || (reachableScopes.includes("another") && reachableScopes.includes(scope))
      ? "passed"
      : "FORBIDDEN";
  }

  for (const [index, route] of Object.keys(PEOPLE_ROUTES).entries()) {
    it(`${route} is only for the callers of its row`, async () => {
      for (const scope of ["own", "foreign"] as const) {
        const ask = async ({ name, token }: TestCaller) => {
          const sampleInput = { token, organizationId: organizations[scope], appId: apps[scope], runId: 1 };
          const status = await peopleSample(route)(service, sampleInput);
          expect(status, "the service must not fail").to.not.equal("INTERNAL_ERROR");
          return [name, status !== null && REFUSALS.includes(status) ? status : "passed"];
        };
        const sample = sampleOfCallers(index, scope);
        const found = Object.fromEntries(await Promise.all(sample.map(ask)));
        const expectedOutcomes = sample.map((caller) => [caller.name, expectedOutcome(route, caller, scope)]);
        expect(found, scope).to.deep.equal(Object.fromEntries(expectedOutcomes));
      }
    });
  }

  for (const { method, path } of ROUTES.filter(({ isForAnonymous }) => !isForAnonymous)) {
    it(`${method} ${path} rejects a request without a credential`, async () => {
      const { http, body } = await service.rest(method, path.replace(/:\w+/g, "1"), { as: null });
      expect(http).to.equal(401);
      expect(body).to.have.keys("status", "error");
      expect(body.status).to.equal("UNAUTHORIZED");
    });
  }

  it("every query and mutation of the schema rejects a request without a credential", async () => {
    const schema = await loadSchema();
    const value = ({ type }: GraphQLArgument): string => {
      const inner = getNullableType(type);
      if (isListType(inner)) return "[]";
      if (isInputObjectType(inner)) return "{}";
      return { Int: "1", Boolean: "true", JSON: "{}" }[String(inner)] ?? '"1"';
    };
    const open: string[] = [];
    let requests = 0;
    for (const [operation, type] of [
      ["query", schema.getQueryType()!],
      ["mutation", schema.getMutationType()!],
    ] as const) {
      for (const field of Object.values(type.getFields())) {
        const requiredArguments = field.args
          .filter(({ type }) => isNonNullType(type))
          .map((arg) => `${arg.name}: ${value(arg)}`);
        const passed = requiredArguments.length > 0 ? `(${requiredArguments.join(", ")})` : "";
        const selection = isCompositeType(getNamedType(field.type)) ? "{ __typename }" : "";
        const text = `${operation} { ${field.name}${passed} ${selection} }`;
        requests += 1;
        // After some rejections without a credential, the service delays further ones to this address. So each request has another address.
        const headers = { "x-forwarded-for": `10.0.${requests >> 8}.${requests & 255}` };
        const { errors } = await service.graphql(text, {}, { as: null, headers });
        if (errors?.[0].extensions.status !== "UNAUTHORIZED") open.push(`${text}: ${JSON.stringify(errors?.[0])}`);
      }
    }
    expect(open).to.deep.equal([]);
  });
});
