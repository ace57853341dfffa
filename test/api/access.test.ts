/** The matrix of access, operation by operation, as it is met from outside; and that nothing stands beside it. */
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
import { createSchema, type Resolvers } from "../../src/api/graphql/schema.js";
import { ROUTES } from "../../src/api/rest/routes.js";
import { CREDENTIAL_KINDS, type CredentialKind } from "../../src/data/credential.js";
import { rows } from "../../src/data/database.js";
import { hashToken, newToken } from "../../src/operations/access/tokens.js";
import { ACCESS, type Operation } from "../../src/rules/access.js";
import { startTestService, type TestService } from "../harness/service.js";
import { SAMPLES } from "./access-samples.js";

/** Operations of no single app: they know no other app to be kept from. */
const OF_NO_APP: readonly Operation[] = ["listApps"];

const OPERATIONS = Object.keys(ACCESS) as Operation[];
const REFUSALS = ["UNAUTHORIZED", "FORBIDDEN"];

describe("the matrix of access", () => {
  let service: TestService;
  const tokens = new Map<CredentialKind, string>();
  const apps: Record<"own" | "another" | "foreign", number> = { own: 0, another: 0, foreign: 0 };

  async function insert(sql: string, parameters: unknown[]): Promise<number> {
    const [row] = await rows<{ id: number }>(service.db, `${sql} RETURNING id`, parameters);
    return row!.id;
  }

  /** A queued run that the credential started, for whoever may cancel its own. */
  async function queuedRun(token: string): Promise<number> {
    return insert(
      `INSERT INTO run (app_id, action_id, copy, trigger, payload, state, credential_id)
       SELECT $1, 1, 'master', 'manual', '{}', 'queued', id FROM credential WHERE hash = $2`,
      [apps.own, hashToken(token)],
    );
  }

  /** "passed" the gate, or the status of the refusal. */
  async function outcome(operation: Operation, kind: CredentialKind | null, appId: number): Promise<string> {
    const token = kind && tokens.get(kind)!;
    const runId = token && operation === "cancelRun" ? await queuedRun(token) : 1;
    const status = await SAMPLES[operation](service, { token, kind, appId, runId });
    expect(status, "no fault of the service").to.not.equal("INTERNAL_ERROR");
    // Whom the matrix does not let in the access rules of the app judge; of what is not there they grant nothing.
    if (status === "DATA_SOURCE_ACCESS_DENIED") return "FORBIDDEN";
    return status !== null && REFUSALS.includes(status) ? status : "passed";
  }

  async function outcomes(operation: Operation, appId: number): Promise<Record<string, string>> {
    const found: Record<string, string> = {};
    for (const kind of CREDENTIAL_KINDS) found[kind] = await outcome(operation, kind, appId);
    return found;
  }

  before(async () => {
    service = await startTestService({ ROLES: "api" });
    const { appId, organizationId } = service;
    for (const [kind, token] of Object.entries(service.tokens)) tokens.set(kind as CredentialKind, token);
    const task = newToken("task");
    await insert("INSERT INTO credential (kind, hash, app_id) VALUES ('task', $1, $2)", [hashToken(task), appId]);
    tokens.set("task", task);
    const newApp = "INSERT INTO app (organization_id, name) VALUES ($1, 'other')";
    const elsewhere = await insert("INSERT INTO organization (name) VALUES ($1)", ["Elsewhere"]);
    apps.own = appId;
    apps.another = await insert(newApp, [organizationId]);
    apps.foreign = await insert(newApp, [elsewhere]);
  });
  after(() => service.stop());

  for (const operation of OPERATIONS) {
    const who: readonly CredentialKind[] = ACCESS[operation].who;

    it(`${operation} is refused without a credential`, async () => {
      expect(await outcome(operation, null, apps.own)).to.equal("UNAUTHORIZED");
    });

    it(`${operation} of its own app is for ${who.join(", ")}, and for nobody else`, async () => {
      const expected = CREDENTIAL_KINDS.map((kind) => [kind, who.includes(kind) ? "passed" : "FORBIDDEN"]);
      expect(await outcomes(operation, apps.own)).to.deep.equal(Object.fromEntries(expected));
    });

    if (OF_NO_APP.includes(operation)) continue;
    for (const place of ["another", "foreign"] as const) {
      const said = place === "another" ? "another app" : "another organization's app";
      it(`${operation} of ${said} is for administrators at the most`, async () => {
        const expected = CREDENTIAL_KINDS.map((kind) => [
          kind,
          kind === "admin" && who.includes(kind) ? "passed" : "FORBIDDEN",
        ]);
        expect(await outcomes(operation, apps[place])).to.deep.equal(Object.fromEntries(expected));
      });
    }

    it(`${operation} of an app that does not exist tells nobody so but administrators`, async () => {
      for (const kind of CREDENTIAL_KINDS) {
        const token = tokens.get(kind)!;
        const status = await SAMPLES[operation](service, { token, kind, appId: 2_000_000_000, runId: 1 });
        const expected = kind === "admin" && who.includes(kind) ? "APP_NOT_FOUND" : "FORBIDDEN";
        expect(status, kind).to.equal(expected);
      }
    });
  }

  for (const { method, path } of ROUTES) {
    it(`${method} ${path} answers nobody without a credential`, async () => {
      const { http, body } = await service.rest(method, path.replace(/:\w+/g, "1"), { as: null });
      expect(http).to.equal(401);
      expect(body).to.have.keys("status", "error");
      expect(body.status).to.equal("UNAUTHORIZED");
    });
  }

  it("every query and mutation of the schema answers nobody without a credential", async () => {
    const schema = await createSchema(new Proxy({}, { get: () => ({}) }) as Resolvers);
    const value = ({ type }: GraphQLArgument): string => {
      const inner = getNullableType(type);
      if (isListType(inner)) return "[]";
      if (isInputObjectType(inner)) return "{}";
      return { Int: "1", Boolean: "true", JSON: "{}" }[String(inner)] ?? '"1"';
    };
    const open: string[] = [];
    for (const [operation, type] of [
      ["query", schema.getQueryType()!],
      ["mutation", schema.getMutationType()!],
    ] as const) {
      for (const field of Object.values(type.getFields())) {
        const given = field.args.filter(({ type }) => isNonNullType(type)).map((arg) => `${arg.name}: ${value(arg)}`);
        const passed = given.length > 0 ? `(${given.join(", ")})` : "";
        const selection = isCompositeType(getNamedType(field.type)) ? "{ __typename }" : "";
        const text = `${operation} { ${field.name}${passed} ${selection} }`;
        const { errors } = await service.graphql(text, {}, { as: null });
        if (errors?.[0].extensions.status !== "UNAUTHORIZED") open.push(`${text}: ${JSON.stringify(errors?.[0])}`);
      }
    }
    expect(open).to.deep.equal([]);
  });
});
