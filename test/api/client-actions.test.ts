import { createHash } from "node:crypto";
import { expect } from "chai";
import type { Client } from "graphql-ws";
import { startTestService, type TestService, type TokenKind } from "../harness/service.js";
import { clientActions, code, ON_PAGE_VIEW } from "./client-actions.js";

interface Change {
  reset: boolean;
  removed: number[];
  actions: { id: number; integrity: string; triggers: object[]; assets: object[] }[];
}

describe("Client actions", () => {
  let service: TestService;
  const clients: Client[] = [];
  before(async () => {
    service = await startTestService({ ROLES: "api" });
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
  });
  afterEach(() => Promise.all(clients.splice(0).map((client) => client.dispose())));
  after(() => service.stop());

  const { actions, create, update, publish } = clientActions(() => service);

  /** Subscribes to the client actions of an app. `next` waits for a change. `known` has the actions by ID, after the changes so far. */
  function follow(as: TokenKind | (string & {}), appId = service.appId) {
    const client = service.socket(as);
    clients.push(client);
    const changes = client.iterate<{ clientTriggers: Change }>({
      query: `subscription { clientTriggers(appId: ${appId}) { reset removed actions { id integrity triggers { trigger where { type } } assets { name url path } } } }`,
    });
    const known = new Map<number, Change["actions"][number]>();
    return {
      known,
      async next(): Promise<Change> {
        const { value } = await changes.next();
        const change = value?.data?.clientTriggers as Change;
        if (change.reset) known.clear();
        for (const id of change.removed) known.delete(id);
        for (const action of change.actions) known.set(action.id, action);
        return change;
      },
    };
  }

  describe("are delivered", () => {
    it("all at first, of the caller's version: drafts in the viewer, live versions in the live app", async () => {
      const master = await create();
      const production = await publish(master);
      for (const [as, expected, other] of [
        ["viewer", master, production],
        ["live", production, master],
        ["editor", master, production],
      ] as const) {
        const feed = follow(as);
        expect((await feed.next()).reset).to.equal(true);
        expect([...feed.known.keys()])
          .to.include(expected)
          .and.not.include(other);
      }
    });

    it("without live versions while the app is unpublished, and all again after it is published", async () => {
      const production = await publish(await create());
      const master = follow("viewer");
      const feed = follow("live");
      await feed.next();
      await master.next();
      expect([...feed.known.keys()]).to.include(production);
      await service.rest("POST", `/v1/apps/${service.appId}/unpublish`);
      while (feed.known.size > 0) await feed.next();
      const refused = [
        await service.rest("POST", `${actions()}/${production}/clientRuns`, { as: "live", body: { duration: 1 } }),
        await service.rest("GET", `${actions()}/${production}/compile`, { as: "live" }),
      ];
      expect(refused.map(({ http, body }) => [http, body.status])).to.deep.equal([
        [409, "APP_NOT_PUBLISHED"],
        [404, "ACTION_NOT_FOUND"],
      ]);
      await service.rest("POST", `/v1/apps/${service.appId}/publish`);
      while (!feed.known.has(production)) await feed.next();
      // The subscription `master` follows drafts. Publishing the app changes no draft, so the next event is this new draft.
      const id = await create();
      expect((await master.next()).actions.map((action) => action.id)).to.deep.equal([id]);
    });

    it("without server actions, inactive ones, ones without an analytics trigger, legacy ones and those of other apps", async () => {
      const shown = await create({ environment: "any", triggers: [...ON_PAGE_VIEW, { trigger: "manual" }] });
      const legacy = await create();
      await service.db.query("UPDATE action SET action_version = 'v2' WHERE id = $1", [legacy]);
      const hidden = [
        await create({ environment: "server", triggers: [] }),
        await create({ active: false }),
        await create({ triggers: [{ trigger: "manual" }] }),
        legacy,
      ];
      const feed = follow("viewer");
      const { actions: all } = await feed.next();
      expect([...feed.known.keys()]).to.include(shown);
      for (const id of hidden) expect([...feed.known.keys()]).not.to.include(id);
      expect(feed.known.get(shown)?.triggers).to.deep.equal(ON_PAGE_VIEW);
      expect(JSON.stringify(all)).not.to.contain("execute");
      const other = await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "other" } });
      const elsewhere = follow("admin", other.body.app.id);
      expect((await elsewhere.next()).actions).to.deep.equal([]);
    });

    it("as each changes: its code, its activation, its environment, its removal", async () => {
      const id = await create();
      const feed = follow("viewer");
      await feed.next();
      const before = feed.known.get(id)?.integrity;
      await update(id, { code: code("two") });
      const changed = await feed.next();
      expect(changed.reset).to.equal(false);
      expect(changed.actions.map((action) => action.id)).to.deep.equal([id]);
      expect(feed.known.get(id)?.integrity).not.to.equal(before);
      await update(id, { active: false });
      expect(await feed.next()).to.deep.equal({ reset: false, actions: [], removed: [id] });
      await update(id, { active: true });
      await feed.next();
      expect(feed.known.has(id)).to.equal(true);
      await update(id, { environment: "server", triggers: [] });
      expect((await feed.next()).removed).to.deep.equal([id]);
      await update(id, { environment: "any", triggers: ON_PAGE_VIEW });
      await feed.next();
      await service.rest("DELETE", `${actions()}/${id}`);
      expect((await feed.next()).removed).to.deep.equal([id]);
    });

    it("to the live app only if the live version changes, also when it is removed with its draft", async () => {
      const id = await create();
      const live = follow("live");
      const viewer = follow("viewer");
      await Promise.all([live.next(), viewer.next()]);
      const production = await publish(id);
      expect((await live.next()).actions.map((action) => action.id)).to.deep.equal([production]);
      await service.rest("DELETE", `${actions()}/${id}`);
      expect((await live.next()).removed).to.deep.equal([production]);
      expect((await viewer.next()).removed).to.deep.equal([id]);
    });

    it("again after the service has lost its connection for notifications, with the changes since", async () => {
      const id = await create();
      const feed = follow("viewer");
      await feed.next();
      await service.db.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'svc-app-actions notices'`);
      await service.db.query("UPDATE action SET active = false WHERE id = $1", [id]);
      while (feed.known.has(id)) await feed.next();
      expect(feed.known.has(id)).to.equal(false);
    });

    it("not to an API token, and not for an app of which the caller is no member; the error has its status", async () => {
      for (const as of ["api"] as const) {
        const refusal = await follow(as)
          .next()
          .catch((error: unknown) => error);
        expect(refusal).to.have.nested.property("[0].extensions.status", "FORBIDDEN");
      }
      const refusal = await follow("live", 999)
        .next()
        .catch((error: unknown) => error);
      expect(refusal).to.have.nested.property("[0].extensions.status", "FORBIDDEN");
    });
  });

  describe("and their scripts", () => {
    const compile = (id: number, as: TokenKind | null, query = "") =>
      service.rest("GET", `${actions()}/${id}/compile${query}`, { as });

    it("have the announced hash, are cached under it without expiry, and are revalidated at their plain URL", async () => {
      const id = await create();
      const feed = follow("viewer");
      await feed.next();
      const { integrity } = feed.known.get(id)!;
      const script = await compile(id, "viewer", `?v=${encodeURIComponent(integrity)}`);
      expect(`sha256-${createHash("sha256").update(script.body).digest("base64")}`).to.equal(integrity);
      expect(script.headers.get("content-type")).to.equal("text/javascript; charset=utf-8");
      expect(script.headers.get("cache-control")).to.equal("private, max-age=31536000, immutable");
      for (const query of ["", "?v=sha256-other"]) {
        expect((await compile(id, "viewer", query)).headers.get("cache-control")).to.equal("private, no-cache");
      }
    });

    it("go to a client that may run the action, and to an editor", async () => {
      const master = await create();
      const production = await publish(master);
      const server = await create({ environment: "server", triggers: [] });
      const inactive = await create({ active: false });
      for (const [id, as, http] of [
        [master, "viewer", 200],
        [production, "viewer", 404],
        [production, "live", 200],
        [master, "live", 404],
        [server, "viewer", 404],
        [inactive, "viewer", 404],
        [server, "editor", 200],
        [inactive, "admin", 200],
        [master, "api", 403],
        [master, null, 401],
      ] as const) {
        expect((await compile(id, as)).http, `${id} as ${as}`).to.equal(http);
      }
    });

    it("also come as a debug page, only for editors", async () => {
      const id = await create();
      const page = await compile(id, "editor", "?html");
      expect(page.http).to.equal(200);
      expect(page.headers.get("content-type")).to.contain("text/html");
      expect(page.headers.get("content-security-policy")).to.match(/^sandbox (?!.*allow-same-origin)/);
      expect(page.headers.get("cache-control")).to.equal("no-store");
      expect((await compile(id, "viewer", "?html")).http).to.equal(403);
    });
  });

  it("end with UNAUTHORIZED as soon as the token is revoked", async () => {
    const made = await service.rest("POST", `/v1/apps/${service.appId}/tokens`, { body: { kind: "viewer" } });
    const client = service.socket(made.body.token);
    const changes = client.iterate({ query: `subscription { clientTriggers(appId: ${service.appId}) { reset } }` });
    await changes.next();
    await service.rest("DELETE", `/v1/apps/${service.appId}/tokens/${made.body.id}`);
    const refusal = await changes.next().then(
      () => null,
      ([error]) => error.extensions.status,
    );
    expect(refusal).to.equal("UNAUTHORIZED");
    await client.dispose();
  });
});
