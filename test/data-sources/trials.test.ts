/** Tests a trial of access rules as a given user: it returns what this user's page would get, and changes nothing. */
import { expect } from "chai";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { ACCESS_RULE_FORMS, PAGES, tokensOf } from "./callers.js";

describe("a trial of access rules", () => {
  let service: TestService;
  let base: string;
  const users: Record<string, object | null> = { nobody: null, live: null, viewer: null };
  let tokens: Awaited<ReturnType<typeof tokensOf>>;

  before(async () => {
    service = await useSharedService("api");
    base = `/v1/apps/${service.appId}/data-sources`;
    tokens = await tokensOf(service);
    const { entries } = (await service.rest("POST", `${base}/Users/query`, { body: {} })).body;
    for (const { id, dataSourceId, data } of entries) {
      users[data.Office.toLowerCase()] = { dataSourceId, entryId: id };
    }
    const body = {
      name: "Seats",
      entries: [
        { Office: "London", Note: 1 },
        { Office: "Paris", Note: 2 },
      ],
    };
    await service.rest("POST", base, { body });
  });
  after(() => service.stop());

  for (const [form, { rule }] of Object.entries(ACCESS_RULE_FORMS)) {
    it(`shows for ${form} what each page gets`, async () => {
      const accessRules = rule === null ? [] : [{ type: ["select"], exclude: ["Note"], ...rule }];
      await service.rest("PUT", `${base}/Seats`, { body: { accessRules: [] } });
      for (const who of PAGES) {
        const trial = (await service.rest("POST", `${base}/Seats/try`, { body: { user: users[who], accessRules } }))
          .body;
        await service.rest("PUT", `${base}/Seats`, { body: { accessRules } });
        const as = who === "nobody" ? null : tokens[who]!;
        const page = await service.rest("POST", `${base}/Seats/query`, { as, body: {} });
        await service.rest("PUT", `${base}/Seats`, { body: { accessRules: [] } });
        expect(trial.entries, who).to.deep.equal(page.http === 200 ? page.body.entries : null);
        expect(trial.verbs[0].allowed, who).to.equal(page.http === 200);
        expect(trial.verbs.slice(1).map(({ allowed }: { allowed: boolean }) => allowed)).to.deep.equal([
          false,
          false,
          false,
        ]);
      }
    });
  }

  it("returns the where that a rule requires and the rule that decides, and hides hashed columns", async () => {
    const accessRules = [
      { type: ["select"], allow: "all", enabled: false },
      { type: ["select"], allow: "loggedIn", require: [{ Email: { equals: "{{user.Email}}" } }] },
    ];
    const body = { user: users["paris"], accessRules };
    const trial = (await service.rest("POST", `${base}/Users/try`, { body })).body;
    expect(trial.verbs[0]).to.deep.include({ verb: "select", allowed: true, rule: 1, required: ["Email"] });
    expect(trial.verbs[0].columns).to.have.members(["Email", "Office"]);
    expect(trial.entries.map(({ data }: { data: object }) => data)).to.deep.equal([
      { Email: "paris@example.org", Office: "Paris" },
    ]);
    expect(JSON.stringify(trial)).to.not.contain("Password");
  });

  it("is for callers who may read everything, and rejects an invalid user", async () => {
    for (const as of ["live", "viewer", null] as const) {
      expect((await service.rest("POST", `${base}/Users/try`, { as, body: {} })).http).to.equal(
        as === null ? 401 : 403,
      );
    }
    for (const user of ["ada", {}, { dataSourceId: "Users" }, { dataSourceId: "Users", entryId: "1" }]) {
      const { http, body } = await service.rest("POST", `${base}/Users/try`, { body: { user } });
      expect([http, body.status], JSON.stringify(user)).to.deep.equal([400, "REQUEST_INVALID"]);
    }
    const gone = { dataSourceId: "Users", entryId: 987654321 };
    expect((await service.rest("POST", `${base}/Users/try`, { body: { user: gone } })).http).to.equal(404);
  });
});
