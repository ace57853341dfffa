/** Callers of a data source with access rules, their tokens, and forms of a rule with the callers that each form allows. */
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { generateToken, hashToken } from "../../src/operations/access/tokens.js";
import type { EntryVerb } from "../../src/rules/entries/access-rules.js";
import type { TestService } from "../harness/service.js";

const HOOKS = [{ type: "operations", runOn: ["insert", "update"], fields: { Password: ["hash"] } }];

/** Callers that need an access rule: an anonymous caller, two pages without an app user, and two pages with one (London and Paris). */
export const PAGES = ["nobody", "live", "viewer", "london", "paris"] as const;
/** Callers that need no access rule. */
export const TRUSTED = ["editor", "admin", "api", "task"] as const;
export type TestCaller = (typeof PAGES)[number] | (typeof TRUSTED)[number];

/** Forms of an access rule, each with the callers that it allows. */
export const ACCESS_RULE_FORMS: Record<string, { rule: object | null; allowed: readonly TestCaller[] }> = {
  "no rule": { rule: null, allowed: [] },
  "a rule for all": { rule: { allow: "all" }, allowed: PAGES },
  "a rule for all that is switched off": { rule: { allow: "all", enabled: false }, allowed: [] },
  "a rule for those signed in": { rule: { allow: "loggedIn" }, allowed: ["london", "paris"] },
  "a rule for one office": { rule: { allow: { user: { Office: { equals: "London" } } } }, allowed: ["london"] },
  "a rule for all offices but one": {
    rule: { allow: { user: { Office: { notequals: "London" } } } },
    allowed: ["paris"],
  },
  "a rule for a part of an office's name": {
    rule: { allow: { user: { Office: { contains: "ari" } } } },
    allowed: ["paris"],
  },
  "a rule for a column that users do not have": {
    rule: { allow: { user: { Boss: { equals: "{{user.Boss}}" } } } },
    allowed: [],
  },
};

/** Creates the app users `london` and `paris`, and signs them in, each to its own page. Returns a token of each caller except `nobody`. */
export async function tokensOf(service: TestService): Promise<Partial<Record<TestCaller, string>>> {
  const tokens: Partial<Record<TestCaller, string>> = {};
  const base = `/v1/apps/${service.appId}/data-sources`;
  await service.rest("POST", base, { body: { name: "Users", hooks: HOOKS, isUsers: true } });
  for (const kind of ["editor", "admin", "api", "live", "viewer"] as const) tokens[kind] = service.tokens[kind];
  tokens.task = generateToken("task");
  await rows(service.db, "INSERT INTO credential (kind, hash, app_id) VALUES ('task', $1, $2)", [
    hashToken(tokens.task),
    service.appId,
  ]);
  for (const [who, Office] of [
    ["london", "London"],
    ["paris", "Paris"],
  ] as const) {
    const data = { Email: `${who}@example.org`, Password: who, Office };
    await service.rest("POST", `${base}/Users/entries`, { body: { data } });
    const page = await service.rest("POST", `/v1/apps/${service.appId}/tokens`, { body: { kind: "live" } });
    tokens[who] = page.body.token;
    const where = { Email: data.Email, Password: data.Password };
    const signedIn = await service.rest("POST", `/v1/apps/${service.appId}/session`, {
      as: tokens[who]!,
      body: { dataSourceId: "Users", where },
    });
    expect(signedIn.http).to.equal(200);
  }
  return tokens;
}

/** Requests for each operation on entries: at least one for each route that performs it. */
export const CALLS_OF_VERBS: Record<
  EntryVerb,
  ((path: string, id: number) => [method: string, path: string, body?: unknown])[]
> = {
  select: [
    (path, id) => ["GET", `${path}/entries/${id}`],
    (path) => ["POST", `${path}/query`, {}],
    (path) => ["GET", `${path}/indexes/Name`],
  ],
  insert: [
    (path) => ["POST", `${path}/entries`, { data: { Name: "b" } }],
    (path) => ["POST", `${path}/commit`, { entries: [{ data: { Name: "b" } }] }],
    (path) => ["POST", `${path}/import?append=true`, [{ Name: "b" }]],
  ],
  update: [
    (path, id) => ["PUT", `${path}/entries/${id}`, { data: { Name: "c" } }],
    (path, id) => ["POST", `${path}/commit`, { entries: [{ id, data: { Name: "c" } }], extend: true }],
  ],
  delete: [
    (path, id) => ["DELETE", `${path}/entries/${id}`],
    (path) => ["POST", `${path}/query`, { type: "delete", where: {} }],
    (path, id) => ["POST", `${path}/commit`, { delete: [id] }],
    (path) => ["POST", `${path}/commit`, { append: false }],
  ],
};
