/** Tests several pulls of a git repository: which of them change the app if a webhook is late, a tag moves, or pulls overlap. */
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { gitCalls, project } from "../git/support.js";
import { type GitServer, startGitServer } from "../harness/git-server.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

describe("a pull of a git repository", () => {
  let service: TestService;
  let server: GitServer;

  const { path, fields, connect, pull, lastPull, actions, idOf, versions, webhook, pushed } = gitCalls(() => ({
    service,
    server,
  }));

  before(async () => {
    server = await startGitServer();
    service = await startTestService({ ROLES: "api", ALLOW_PRIVATE_NETWORK: "1" });
    await service.rest("POST", path("/publish"));
    server.commit(project(1));
    await connect();
    await pull();
  });
  after(async () => {
    await service.stop();
    await server.stop();
  });
  beforeEach(() => {
    server.status = null;
    server.onRequest = async () => undefined;
  });

  it("does not publish an old tag again when its webhook is delivered again", async () => {
    const { webhookSecret } = (await connect({ ...fields(), newSecret: true })).body;
    const deliver = async (tag: string) => {
      await webhook(webhookSecret, pushed(`refs/tags/${tag}`));
      // The pulls of one app run one after the other. So when this pull ends, the pull of the webhook has ended too.
      await pull("?plan=true");
    };
    const publishedBy = async (tag: string) => (await lastPull()).ref === `refs/tags/${tag}` && (await lastPull());
    const isLive = async (value: number) => {
      const { body } = await service.rest("GET", `/v3/apps/${service.appId}/actions/${await idOf("first")}/diff`);
      const [{ description }] = (await actions()).filter((action: { name: string }) => action.name === "first");
      return description === `value ${value}` && body.diff.changes.length === 0;
    };
    server.tag("v20", server.commit(project(20)));
    await webhook(webhookSecret, pushed("refs/tags/v20"));
    await until(() => publishedBy("v20"));
    server.tag("v21", server.commit(project(21)));
    await webhook(webhookSecret, pushed("refs/tags/v21"));
    await until(() => publishedBy("v21"));
    await deliver("v20");
    expect([(await lastPull()).ref, await isLive(21)]).to.deep.equal(["refs/tags/v21", true]);
    // A person can also pull an older tag. A tag that now points to another commit is published again.
    expect((await pull("", { ref: "refs/tags/v20" })).body.pull.published).to.deep.equal(["first"]);
    expect(await isLive(20)).to.equal(true);
    server.tag("v20", server.commit(project(22)));
    await webhook(webhookSecret, pushed("refs/tags/v20"));
    await until(() => isLive(22));
    // The webhook of the tag v23 arrives after that of v24. The tag v23 was never published, so this pull still publishes it.
    server.tag("v23", server.commit(project(23)));
    server.tag("v24", server.commit(project(24)));
    await webhook(webhookSecret, pushed("refs/tags/v24"));
    await until(() => isLive(24));
    await webhook(webhookSecret, pushed("refs/tags/v23"));
    await until(() => isLive(23));
  });

  it("publishes a tag although the git server fails at first, and shows its error after the last attempt", async () => {
    const { webhookSecret } = (await connect({ ...fields(), newSecret: true })).body;
    const error = "the Git server responded with the HTTP status 503";
    const waiting = () => rows(service.db, "SELECT FROM git_webhook");
    server.tag("v25", server.commit(project(25)));
    const statuses = [503, null];
    server.onRequest = async () => {
      server.status = statuses.shift() ?? null;
    };
    await webhook(webhookSecret, pushed("refs/tags/v25"));
    await until(async () => (await waiting()).length === 0);
    const last = await lastPull();
    expect([last.ref, last.error]).to.deep.equal(["refs/tags/v25", null]);
    expect(last.published).to.include("first");
    server.tag("v26", server.commit(project(26)));
    server.onRequest = async () => {
      server.status = 503;
    };
    await webhook(webhookSecret, pushed("refs/tags/v26"));
    await until(async () => (await lastPull()).error === error);
    await rows(service.db, "UPDATE git_webhook SET attempts = 3");
    await until(async () => (await waiting()).length === 0);
    expect(await lastPull()).to.deep.include({ ref: "refs/tags/v26", published: [], error });
  });

  it("publishes an action of which only the stored scripts differ", async () => {
    const master = await idOf("first");
    server.tag("v31", server.commit(project(31)));
    await pull("", { ref: "refs/tags/v31" });
    expect((await pull("", { ref: "refs/tags/v31" })).body.pull.published).to.deep.equal([]);
    await rows(service.db, `UPDATE action SET assets = '[{"url":"https://example.com/a.js"}]' WHERE master_id = $1`, [
      master,
    ]);
    expect((await pull("", { ref: "refs/tags/v31" })).body.pull.published).to.deep.equal(["first"]);
  });

  it("is rejected if a later pull of the same branch has started", async () => {
    await connect();
    const old = server.commit(project(7));
    const arrived = Promise.withResolvers<void>();
    const isFree = Promise.withResolvers<void>();
    server.onRequest = async () => {
      arrived.resolve();
      await isFree.promise;
    };
    const first = pull();
    await arrived.promise;
    // Simulates another process that has started a later pull.
    await rows(service.db, "UPDATE app_git SET branch_pulls = branch_pulls + 1");
    isFree.resolve();
    const { http, body } = await first;
    expect([http, body.status]).to.deep.equal([409, "MANIFEST_CHANGED"]);
    expect((await versions("first"))[0].commit).not.to.equal(old);
    expect((await lastPull()).commit, "an outdated pull stores no outcome").not.to.equal(old);
    expect((await pull()).body.pull.commit).to.equal(old);
  });

  it("neither applies nor publishes after the connection has changed or a later tag has started", async () => {
    await connect();
    const master = await idOf("first");
    const live = async () =>
      (
        await rows<{ description: string }>(service.db, "SELECT description FROM action WHERE master_id = $1", [master])
      )[0]!.description;
    const before = JSON.stringify(await actions());
    const liveBefore = await live();
    const changes = [
      () => connect(),
      async () => {
        await service.rest("DELETE", path("/git"));
        await connect();
      },
      () => rows(service.db, "UPDATE app_git SET tag_pulls = tag_pulls + 1"),
    ];
    for (const change of changes) {
      server.tag("v8", server.commit(project(9)));
      const arrived = Promise.withResolvers<void>();
      const isFree = Promise.withResolvers<void>();
      server.onRequest = async () => {
        arrived.resolve();
        await isFree.promise;
      };
      const tag = pull("", { ref: "refs/tags/v8" });
      await arrived.promise;
      await change();
      isFree.resolve();
      expect((await tag).body.status).to.equal("MANIFEST_CHANGED");
      expect([JSON.stringify(await actions()), await live()]).to.deep.equal([before, liveBefore]);
    }
  });
});
