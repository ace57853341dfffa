/**
 * Checks the whole REST table and GraphQL schema: each read has an ETag, and each change is refused if the resource has changed since the
 * caller read the ETag.
 */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { buildSchema } from "graphql";
import { ROUTES } from "../../src/api/rest/routes.js";
import { createSignedInPerson } from "../harness/people.js";
import { longTest, sampleOf } from "../harness/samples.js";
import { type Answer, startTestService, type TestService } from "../harness/service.js";
import { CREATING_MUTATION, GRAPHQL_CHANGES, REST_CHANGES, STATELESS_MUTATIONS } from "./conditional-samples.js";

const SCHEMA = fileURLToPath(new URL("../../../schema/schema.graphql", import.meta.url));
const mutations = () => Object.values(buildSchema(readFileSync(SCHEMA, "utf8")).getMutationType()!.getFields());

const PAST = "2020-01-01T00:00:00.000Z";

const nameOf = ({ method, path }: { method: string; path: string }) => `${method} ${path}`;
const READS = ROUTES.filter(({ method }) => method === "GET");

/** Returns the error status of a change that is based on an outdated state. */
const statusOfChanged = (path: string): string => {
  if (
    /^(?:[A-Z]+ )?\/v3\/apps\/:appId\/actions(?!.*\/presets)/.test(path) ||
    /(?:Action|ActionVersion|TriggerSecret)$/.test(path)
  )
    return "ACTION_CHANGED";
  return /entries\/:entryId|Entry$/.test(path) ? "ENTRY_CHANGED" : "RESOURCE_CHANGED";
};

/** Routes whose If-Match is a digest of the content. The tests of manifests cover these routes. */
const ROUTES_WITH_CONTENT_ETAG = ["PUT /v1/apps/:appId/manifest"];

describe("conditional requests", () => {
  let service: TestService;

  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());

  it("work for every route and mutation that changes something", async () => {
    const sampledRoutes = ROUTES.filter((route) => REST_CHANGES[nameOf(route)]).length;
    expect(sampledRoutes).to.equal(Object.keys(REST_CHANGES).length);
    for (const route of ROUTES) {
      if (!["PUT", "DELETE"].includes(route.method)) continue;
      if (ROUTES_WITH_CONTENT_ETAG.includes(nameOf(route))) continue;
      expect(Boolean(REST_CHANGES[nameOf(route)]) !== Boolean(route.hasNoVersion), nameOf(route)).to.equal(true);
    }
    for (const { name, args } of mutations()) {
      const hasConditionArgument = args.some(
        (argument) => argument.name === "ifUpdatedAt" && String(argument.type) === "DateTime",
      );
      expect(Boolean(GRAPHQL_CHANGES[name]), name).to.equal(hasConditionArgument);
      if (!hasConditionArgument)
        expect(CREATING_MUTATION.test(name) || STATELESS_MUTATIONS.includes(name), name).to.equal(true);
    }
  });

  const expectChanged = ({ http, body }: Answer, status: string) => {
    expect([http, body.status]).to.deep.equal([409, status]);
    const stored = body.action ?? body.entry ?? body.resource;
    expect(stored.updatedAt).to.match(/^\d{4}-/);
  };

  for (const [index, [name, { make, body, list }]] of Object.entries(REST_CHANGES).entries()) {
    const [method, path] = name.split(" ") as [string, string];

    describe(name, () => {
      const sampledTest = index % 4 === 0 ? it : longTest;
      /** Index of this route among the routes that `npm test` tests. It tests every fourth route. */
      const sampleIndex = Math.floor(index / 4);

      async function sample() {
        const { ids, updatedAt, as = "admin" } = await make(service);
        const fillPath = (text: string) => text.replace(/:(\w+)/g, (_, id: string) => String(ids[id] ?? 1));
        const sent = typeof body === "function" ? body(ids) : body;
        const send = (tag?: string) =>
          service.rest(method, fillPath(path), {
            as,
            body: sent,
            headers: tag === undefined ? {} : { "if-match": tag },
          });
        const tagOfList = async () => (await service.rest("GET", fillPath(list!), { as })).headers.get("etag")!;
        return { updatedAt, send, tagOfList, as };
      }

      if (list) {
        sampledTest("accept the ETag of their list until the list changes", async () => {
          const { send, tagOfList } = await sample();
          const tag = await tagOfList();
          expect((await send(tag)).http).to.be.within(200, 299);
          expect(await tagOfList()).to.not.equal(tag);
          const { send: sendOther } = await sample();
          const { http, body: refused } = await sendOther(tag);
          expect([http, refused.status]).to.deep.equal([409, "RESOURCE_CHANGED"]);
        });
      }

      it(`return ${statusOfChanged(name)} for a stale If-Match, and change nothing`, async () => {
        const { updatedAt, send } = await sample();
        expectChanged(await send(`"${PAST}"`), statusOfChanged(name));
        expect((await send(`"${updatedAt}"`)).http).to.be.within(200, 299);
      });

      sampledTest("accept a current If-Match once: weak, in a list, or *; and a request without one", async () => {
        for (const tag of sampleOf(["W/TAG", `"other", TAG`, "*", undefined], sampleIndex, 4)) {
          const { updatedAt, send } = await sample();
          const answer = await send(tag?.replace("TAG", `"${updatedAt}"`));
          expect(answer.http, `${tag}: ${JSON.stringify(answer.body)}`).to.be.within(200, 299);
        }
      });

      sampledTest("reject an invalid If-Match", async () => {
        const { updatedAt, send } = await sample();
        for (const tag of sampleOf([updatedAt, '"unclosed', "''"], sampleIndex, 3)) {
          const { http, body: answer } = await send(tag);
          expect([http, answer.status], tag).to.deep.equal([400, "REQUEST_INVALID"]);
        }
      });
    });
  }

  for (const route of ROUTES.filter(({ hasNoVersion: stateless }) => stateless)) {
    it(`${nameOf(route)} rejects an If-Match, because there is no state to compare`, async () => {
      const path = route.path.replace(":appId", "1").replace(/:\w+/g, "999");
      const headers = { "if-match": '"x"' };
      const { http, body } = await service.rest(route.method, path, { body: {}, headers });
      expect([http, body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
      expect(body.error).to.contain("If-Match");
    });
  }

  for (const [name, { make, call, selection = "", owner = "appId: 1, " }] of sampleOf(
    Object.entries(GRAPHQL_CHANGES),
    0,
    6,
  )) {
    it(`${name} supports ifUpdatedAt: stale, invalid, current and absent`, async () => {
      for (const state of ["stale", "current", "absent"]) {
        const { ids, updatedAt, as = "admin" } = await make(service);
        const args = call.replace(/\$(\w+)/g, (_, id: string) => String(ids[id]));
        const ask = (at: string | null) =>
          service.graphql(
            `mutation ($at: DateTime) { ${name}(${owner}${args && `${args}, `}ifUpdatedAt: $at)${selection} }`,
            { at },
            { as },
          );
        if (state === "stale") {
          const { errors } = await ask(PAST);
          expect(errors?.[0].extensions.status).to.equal(statusOfChanged(name));
          const { action, entry, resource } = errors![0].extensions;
          expect((action ?? entry ?? resource).updatedAt).to.match(/^\d{4}-/);
          for (const faulty of ["yesterday", ""]) {
            expect((await ask(faulty)).errors?.[0].extensions.status).to.equal("REQUEST_INVALID");
          }
        }
        const { errors } = await ask(state === "absent" ? null : updatedAt);
        expect(errors, `${state}: ${JSON.stringify(errors)}`).to.equal(undefined);
      }
    });
  }

  describe("reads", () => {
    let ids: Record<string, string | number>;
    before(async () => {
      const { ids: action } = await REST_CHANGES["PUT /v3/apps/:appId/actions/:id"]!.make(service);
      const { ids: source } =
        await REST_CHANGES["PUT /v1/apps/:appId/data-sources/:ds/entries/:entryId"]!.make(service);
      const { ids: file } = await REST_CHANGES["PUT /v1/apps/:appId/media/files/:id"]!.make(service);
      const { ids: folder } = await REST_CHANGES["PUT /v1/apps/:appId/media/folders/:id"]!.make(service);
      const { ids: alert } = await REST_CHANGES["PUT /v1/apps/:appId/alerts/:alertId"]!.make(service);
      const { ids: app } = await REST_CHANGES["PUT /v1/apps/:appId"]!.make(service);
      await service.rest("POST", "/v1/apps/1/publish");
      await service.rest("POST", `/v3/apps/1/actions/${action["id"]}/publish`);
      ids = {
        ...alert,
        ...source,
        actionId: action["id"]!,
        action: action["id"]!,
        file: file["id"]!,
        folder: folder["id"]!,
      };
      ids["version"] = action["versionId"]!;
      ids["appVersion"] = app["versionId"]!;
    });

    /** Query strings that these routes require. */
    const QUERIES: Record<string, string> = {
      "/v3/apps/:appId/schedule/preview": "?frequency=0%205%20*%20*%20*",
      "/v3/apps/:appId/runs/statistics": "?from=2026-01-01T00:00:00.000Z&to=2026-01-02T00:00:00.000Z",
      "/v3/apps/:appId/packages/declarations": `?integrity=sha256-${"A".repeat(43)}=`,
    };
    /** Routes whose responses contain the current time, so that two reads differ. */
    const TIME_DEPENDENT_ROUTES = ["/v3/apps/:appId/schedule/week"];
    const ROUTES_WITHOUT_SAMPLE = ["/runs/:runId", "/messages/:messageId", "/passkeys/:passkeyId"];

    function filled(path: string): string {
      return path
        .replace("/media/files/:id", `/media/files/${ids["file"]}`)
        .replace("/media/folders/:id", `/media/folders/${ids["folder"]}`)
        .replace("/v1/apps/:appId/versions/:versionId", `/v1/apps/1/versions/${ids["appVersion"]}`)
        .replace("/actions/:id", `/actions/${ids["action"]}`)
        .replace(":versionId", String(ids["version"]))
        .replace(":columns", "n")
        .replace(/:(\w+)/g, (_, name: string) => String(ids[name] ?? 1))
        .concat(QUERIES[path] ?? "");
    }

    for (const { path } of READS.filter((route) => !ROUTES_WITHOUT_SAMPLE.some((part) => route.path.includes(part)))) {
      it(`GET ${path} returns an ETag, and 304 for the same ETag`, async () => {
        const address = filled(path);
        const isPeopleRoute = ["/v1/auth/", "/v1/organizations/", "/v1/admin/"].some((start) => path.startsWith(start));
        const as = isPeopleRoute ? (await createSignedInPerson(service)).token : "editor";
        const get = (tag?: string) =>
          service.rest("GET", address, tag === undefined ? { as } : { as, headers: { "if-none-match": tag } });
        const { http, headers, body } = await get();
        expect(http, JSON.stringify(body)).to.equal(200);
        const tag = headers.get("etag")!;
        expect(tag).to.match(/^"[^"]+"$/);
        if (TIME_DEPENDENT_ROUTES.includes(path)) return;
        for (const known of [tag, `W/${tag}`, `"other", ${tag}`, "*"]) {
          const again = await get(known);
          expect([again.http, again.body, again.headers.get("etag")], known).to.deep.equal([304, "", tag]);
        }
        const other = await get('"other"');
        expect([other.http, other.body]).to.deep.equal([200, body]);
        for (const faulty of ["x", tag.slice(1, -1)]) {
          const refused = await get(faulty);
          expect([refused.http, refused.body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
        }
      });
    }
  });

  it("an ETag changes with every change of the response, also without an author: an alert that fires, a column of a new entry", async () => {
    const { ids } = await REST_CHANGES["PUT /v1/apps/:appId/alerts/:alertId"]!.make(service);
    const path = `/v1/apps/1/alerts/${ids["id"]}`;
    const before = (await service.rest("GET", path)).headers.get("etag")!;
    const insertFiringState =
      "INSERT INTO alert_state (rule_id, action_id, firing, fired_at, reason) VALUES ($1, 0, true, now(), 'late')";
    await service.db.query(insertFiringState, [ids["id"]]);
    const after = await service.rest("GET", path, { headers: { "if-none-match": before } });
    expect([after.http, after.body.alert?.firing.length]).to.deep.equal([200, 1]);
    // A firing alert changes the ETag but not the rule. So a change with the earlier ETag is accepted.
    const put = { body: { minutes: 5 }, headers: { "if-match": before } };
    expect((await service.rest("PUT", path, put)).http).to.equal(200);

    const { ids: source } = await REST_CHANGES["PUT /v1/apps/:appId/data-sources/:ds"]!.make(service);
    const sourcePath = `/v1/apps/1/data-sources/${source["ds"]}`;
    const tag = (await service.rest("GET", sourcePath)).headers.get("etag")!;
    await service.rest("POST", `${sourcePath}/entries`, { body: { another: 1 } });
    const read = await service.rest("GET", sourcePath, { headers: { "if-none-match": tag } });
    expect([read.http, read.body.dataSource.columns]).to.deep.equal([200, ["n", "another"]]);
  });

  it("an invalid If-None-Match is rejected without the ETag of the resource", async () => {
    const refused = await service.rest("GET", "/v1/apps/1/settings", { headers: { "if-none-match": "no tag" } });
    expect([refused.http, refused.headers.get("etag")]).to.deep.equal([400, null]);
  });

  it("settings: a change of any key, also a protected one or a deletion, makes an ETag stale", async () => {
    const path = "/v1/apps/1/settings";
    const read = async () => (await service.rest("GET", path)).headers.get("etag")!;
    const changes: [string, string, object][] = [
      ["POST", path, { shown: 1 }],
      ["POST", path, { __hidden: "a-long-enough-secret" }],
      ["DELETE", path, { keys: ["__hidden"] }],
      ["PUT", "/v1/admin/apps/1", { settings: { shown: 2 } }],
    ];
    for (const [method, address, body] of changes) {
      const tag = await read();
      expect((await service.rest(method, address, { as: "admin", body })).http).to.equal(200);
      const stale = await service.rest("POST", path, { body: { shown: 3 }, headers: { "if-match": tag } });
      expect([stale.http, stale.body.status], JSON.stringify(body)).to.deep.equal([409, "RESOURCE_CHANGED"]);
      const empty = await service.rest("POST", path, { body: {}, headers: { "if-match": tag } });
      expect([empty.http, empty.body.status], JSON.stringify(body)).to.deep.equal([409, "RESOURCE_CHANGED"]);
      expect(await read()).to.equal(`"${stale.body.resource.updatedAt}"`);
    }
  });
});
