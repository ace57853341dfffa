/**
 * Tests an app that is connected to a git repository: pulls, webhooks, and tags that publish. git-rights.test.ts tests permissions and
 * faulty input, and test/long/git-order.test.ts the order of pulls.
 */
import { createHmac } from "node:crypto";
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { GitWebhookQueue } from "../../src/operations/git/git-deliveries.js";
import { type GitServer, startGitServer } from "../harness/git-server.js";
import { longTest, sampleOf } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { gitCalls, project, TOKEN } from "./support.js";

describe("a git connection", () => {
  let service: TestService;
  let server: GitServer;

  before(async () => {
    server = await startGitServer();
    service = await startTestService({ ROLES: "api", ALLOW_PRIVATE_NETWORK: "1" });
    await service.rest("POST", path("/publish"));
  });
  after(async () => {
    await service.stop();
    await server.stop();
  });
  beforeEach(() => {
    server.token = null;
    server.requests.length = 0;
    server.onRequest = async () => undefined;
  });

  const { path, fields, connect, pull, lastPull, actions, idOf, versions, webhook, pushed } = gitCalls(() => ({
    service,
    server,
  }));

  it("pulls a branch into drafts with the commit in their versions, and plans without a change", async () => {
    const commit = server.commit(project(1));
    server.token = TOKEN;
    const connected = await connect({ ...fields(), token: TOKEN });
    expect(connected.http, JSON.stringify(connected.body)).to.equal(200);
    expect(connected.body.webhookSecret).to.match(/^[\w-]{43}$/);
    const planned = await pull("?plan=true");
    expect(planned.http, JSON.stringify(planned.body)).to.equal(200);
    expect(planned.body.pull.plan.created.map((action: { name: string }) => action.name)).to.have.members([
      ...["title", "rooms", "first", "second"],
    ]);
    expect(await actions()).to.have.length(0);
    expect(await lastPull()).to.equal(null);
    const pulled = await pull();
    expect(pulled.body.pull).to.deep.include({ ref: "refs/heads/main", commit, published: [] });
    expect(await lastPull()).to.deep.include({ ref: "refs/heads/main", commit, published: [], error: null });
    for (const name of ["first", "second"]) expect((await versions(name))[0]).to.deep.include({ commit });
    const [first] = (await actions()).filter((action: { name: string }) => action.name === "first");
    expect(first).to.deep.include({ description: "value 1" });
    expect((await service.rest("GET", path("/settings"))).body).to.deep.equal({ title: "Shop" });
    expect(server.requests.every((request) => request.endsWith("version=2"))).to.equal(true);
    // A version that is saved without a pull has no commit.
    await service.rest("PUT", `/v3/apps/${service.appId}/actions/${await idOf("second")}`, {
      body: { description: "x" },
    });
    expect((await versions("second"))[0]).not.to.have.property("commit");
    const { entries } = (await service.rest("GET", path("/audit"))).body;
    expect(entries.map((entry: { type: string }) => entry.type)).to.include.members([
      "app.git.connect",
      "app.git.pull",
    ]);
  });

  it("pulls the reviewed commit only", async () => {
    const reviewed = (await pull("?plan=true")).body.pull.commit;
    const commit = server.commit(project(1, { "README.md": "another commit" }));
    const { http, body } = await pull("", { commit: reviewed });
    expect([http, body.status, body.error]).to.deep.equal([
      409,
      "MANIFEST_CHANGED",
      `refs/heads/main must be at the reviewed commit (got the commit ${commit}); review that commit and pull again`,
    ]);
    expect((await pull("", { commit })).body.pull.commit).to.equal(commit);
    expect((await pull("", { commit: "main" })).body.error).to.match(/^commit must be the hash of a commit/);
  });

  it("never returns the token or the secret, and does not send the token to another repository", async () => {
    const { body } = await connect({ ...fields(), token: TOKEN });
    expect(body).to.deep.include({ webhookSecret: null });
    expect(body.git).to.deep.include({ hasToken: true, username: "git" });
    const read = JSON.stringify((await service.rest("GET", path("/git"))).body);
    const audit = JSON.stringify((await service.rest("GET", path("/audit"))).body);
    expect(read + audit).not.to.include(TOKEN);
    const elsewhere = await connect({ ...fields(), url: `${server.url}x` });
    expect([elsewhere.http, elsewhere.body.error]).to.deep.equal([
      400,
      '"token" is required when "url" changes; send the token of the new repository, or null if it needs none',
    ]);
    const stored = await rows<{ token: Buffer }>(service.db, "SELECT sealed_token AS token FROM app_git");
    expect(stored[0]!.token.includes(Buffer.from(TOKEN))).to.equal(false);
    const removed = await connect({ ...fields(), token: null });
    expect(removed.body.git.hasToken).to.equal(false);
    const renewed = await connect({ ...fields(), newSecret: true });
    expect(renewed.body.webhookSecret).to.be.a("string");
  });

  it("applies all of a commit or nothing, and names the file or field at fault", async () => {
    const before = JSON.stringify(await actions());
    const faulty: [files: Record<string, string>, status: string, error: RegExp][] = [
      [
        { "actions/third/action.ts": "export const config = defineAction({ a: " },
        "GIT_PULL_FAILED",
        /actions\/third\/action\.ts/,
      ],
      [{ "actions/third/action.ts": "export const x = 1;" }, "REQUEST_INVALID", /actions\[2\]/],
      [{ "settings.json": "{" }, "GIT_PULL_FAILED", /settings\.json is not JSON/],
      [{ "settings.json": "{}" }, "GIT_PULL_FAILED", /settings\.json must contain a JSON array of objects/],
      [{ "lib/other.ts": "->../../../etc/passwd" }, "GIT_PULL_FAILED", /lib\/other\.ts is a symbolic link/],
      [{ data: "->/etc" }, "GIT_PULL_FAILED", /data is a symbolic link/],
      [
        { "lib/twice.ts": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n" },
        "GIT_PULL_FAILED",
        /lib\/twice\.ts is stored in Git LFS/,
      ],
      [
        { "lib/twice.ts": "x".repeat(2 ** 20 + 1) },
        "GIT_PULL_FAILED",
        /lib\/twice\.ts is missing .* or larger than 1 MB/,
      ],
    ];
    for (const [files, status, error] of sampleOf(faulty, 0, 8)) {
      const all = project(5, files);
      if ("data" in files) delete all["data/rooms.json"];
      const commit = server.commit(all);
      const { http, body } = await pull();
      expect([http >= 400 && http < 500, body.status, body.error]).to.deep.equal([true, status, body.error]);
      expect(JSON.stringify(body)).to.match(error);
      expect((await lastPull()).error, commit).to.equal(body.error);
    }
    expect(JSON.stringify(await actions())).to.equal(before);
    server.commit({ "README.md": "no project" });
    expect((await pull()).body.error).to.match(/^the root of the repository contains no project/);
  });

  longTest("takes a folder of the repository, and prunes only if asked", async () => {
    const inFolder = Object.fromEntries(Object.entries(project(2)).map(([name, text]) => [`apps/shop/${name}`, text]));
    delete inFolder["apps/shop/actions/second/action.js"];
    server.commit(inFolder);
    await connect({ ...fields(), folder: "apps/shop" });
    expect((await pull("?plan=true")).body.pull.plan.removed).to.deep.equal([]);
    await connect({ ...fields(), folder: "apps/shop", prune: true });
    const { plan } = (await pull()).body.pull;
    expect(plan.removed).to.deep.equal([{ kind: "action", name: "second" }]);
    await connect({ ...fields(), folder: "apps/none" });
    expect((await pull()).body.error).to.equal("the repository has no folder apps/none");
    await connect();
  });

  it("publishes by a tag that matches, with and without a message, and by no other ref", async () => {
    const first = server.commit(project(3));
    server.tag("v1", first);
    const published = await pull("", { ref: "refs/tags/v1" });
    expect(published.http, JSON.stringify(published.body)).to.equal(200);
    expect(published.body.pull).to.deep.include({ commit: first, published: ["first", "second"] });
    const second = server.commit(project(4));
    server.tag("v2", second, "with a message");
    // Only the action that differs from its live version is published.
    expect((await pull("", { ref: "refs/tags/v2" })).body.pull).to.deep.include({
      commit: second,
      published: ["first"],
    });
    const live = `/v3/apps/${service.appId}/actions/${await idOf("first")}/diff`;
    expect((await service.rest("GET", live)).body.diff.changes).to.deep.equal([]);
    for (const ref of ["refs/tags/other", "refs/heads/next", "main", "", "refs/tags/v1\nx"])
      expect((await pull("", { ref })).body.error, String(ref)).to.match(
        /^ref must be refs\/heads\/main, or refs\/tags\/v\*/,
      );
    expect((await pull("", { ref: "refs/tags/v9" })).body.error).to.equal(
      "the repository has no branch or tag refs/tags/v9",
    );
  });

  it("pulls after a signed webhook, ignores other events, and rejects every other signature", async () => {
    const { webhookSecret } = (await connect({ ...fields(), newSecret: true })).body;
    const commit = server.commit(project(6));
    const accepted = await webhook(webhookSecret, pushed("refs/heads/main"));
    expect([accepted.http, accepted.body]).to.deep.equal([202, { status: "ACCEPTED" }]);
    await until(async () => (await lastPull()).commit === commit);
    server.tag("v3", commit);
    await webhook(webhookSecret, pushed("refs/tags/v3"));
    const last = await until(async () => ((await lastPull()).ref === "refs/tags/v3" ? lastPull() : null));
    expect(last).to.deep.include({ commit, error: null, published: ["first"] });
    const sent = server.requests.length;
    const ignored = [
      pushed("refs/heads/other"),
      { ...pushed("refs/heads/main"), after: "0".repeat(40) },
      { zen: "ping" },
      [],
    ];
    for (const event of ignored) {
      const { http, body } = await webhook(webhookSecret, event);
      expect([http, body]).to.deep.equal([200, { status: "IGNORED" }]);
    }
    const main = pushed("refs/heads/main");
    const refused = [
      await webhook("another secret", main),
      await webhook(webhookSecret, main, { "x-hub-signature-256": "" }),
      await webhook(webhookSecret, main, { "x-hub-signature-256": "sha256=00", "x-gitlab-token": webhookSecret }),
      await service.rest("POST", path("/git/webhook", 999_999), { as: null, body: main }),
    ];
    for (const { http, body } of refused) expect([http, body.status]).to.deep.equal([401, "SIGNATURE_INVALID"]);
    expect(server.requests).to.have.length(sent);
    // The webhook of a push with very many commits has a large body.
    const large = await webhook(webhookSecret, { ...pushed("refs/heads/other"), commits: ["x".repeat(2 * 2 ** 20)] });
    expect([large.http, large.body]).to.deep.equal([200, { status: "IGNORED" }]);
    const form = `payload=${encodeURIComponent(JSON.stringify(main))}`;
    const { http, body } = await service.rest("POST", path("/git/webhook"), {
      as: null,
      body: form,
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        "x-hub-signature-256": `sha256=${createHmac("sha256", webhookSecret).update(form).digest("hex")}`,
      },
    });
    expect([http, body.error]).to.deep.equal([
      400,
      'the body must be JSON (got the content type "application/x-www-form-urlencoded"); set the content type of the webhook to application/json',
    ]);
  });

  longTest(
    "pulls again for a push that arrives during the pull of its branch, and lets at most 20 webhooks wait",
    async () => {
      const { webhookSecret } = (await connect({ ...fields(), newSecret: true })).body;
      const stored = () => rows<{ ref: string }>(service.db, "SELECT ref FROM git_webhook ORDER BY id");
      server.commit(project(25));
      const arrived = Promise.withResolvers<void>();
      const isFree = Promise.withResolvers<void>();
      server.onRequest = () => {
        arrived.resolve();
        return isFree.promise;
      };
      await webhook(webhookSecret, pushed("refs/heads/main"));
      await arrived.promise;
      const main = await Promise.all([1, 2, 3].map(() => webhook(webhookSecret, pushed("refs/heads/main"))));
      expect(main.map(({ http }) => http)).to.deep.equal([202, 202, 202]);
      expect(await stored()).to.deep.equal([{ ref: "refs/heads/main" }, { ref: "refs/heads/main" }]);
      for (let at = 0; at < 19; at += 1)
        expect((await webhook(webhookSecret, pushed(`refs/tags/vnone${at}`))).http).to.equal(202);
      const beyond = await webhook(webhookSecret, pushed("refs/tags/vnone19"));
      expect([beyond.http, beyond.body.status]).to.deep.equal([429, "RATE_LIMIT_EXCEEDED"]);
      expect((await webhook(webhookSecret, pushed("refs/heads/main"))).http).to.equal(202);
      await rows(service.db, "DELETE FROM git_webhook WHERE ref LIKE 'refs/tags/%'");
      const commit = server.commit(project(26));
      isFree.resolve();
      await until(async () => (await stored()).length === 0);
      expect(await lastPull()).to.deep.include({ ref: "refs/heads/main", commit, error: null });
    },
  );

  longTest("applies nothing of a tag that cannot be published", async () => {
    await connect();
    const before = JSON.stringify(await actions());
    server.tag("v30", server.commit(project(30)));
    const cases = [
      ["requires_tests = true", "requires_tests = false", "TESTS_REQUIRED"],
      ["published_at = NULL", "published_at = now()", "APP_NOT_PUBLISHED"],
    ];
    for (const [set, reset, status] of cases) {
      await rows(service.db, `UPDATE app SET ${set} WHERE id = $1`, [service.appId]);
      expect((await pull("", { ref: "refs/tags/v30" })).body.status).to.equal(status);
      await rows(service.db, `UPDATE app SET ${reset} WHERE id = $1`, [service.appId]);
      expect(JSON.stringify(await actions())).to.equal(before);
    }
  });

  it("never removes a live action by a push to the branch, also with prune", async () => {
    const rest = project(32);
    delete rest["actions/first/action.ts"];
    const commit = server.commit(rest);
    await connect({ ...fields(), prune: true });
    expect((await pull()).body.pull.plan.removed).to.deep.equal([]);
    expect((await actions()).map((action: { name: string }) => action.name)).to.include("first");
    server.tag("v32", commit);
    expect((await pull("", { ref: "refs/tags/v32" })).body.pull.plan.removed).to.deep.equal([
      { kind: "action", name: "first" },
    ]);
    await connect();
    server.tag("v33", server.commit(project(33)));
    await pull("", { ref: "refs/tags/v33" });
  });

  it("ends the credential of the connection with its stage", async () => {
    const stage = await service.rest("POST", path("/stages"), { body: { name: "preview", expiresInHours: 1 } });
    const stageId = stage.body.app.id;
    await service.rest("PUT", path("/git", stageId), { body: fields() });
    const [{ id }] = (await rows<{ id: number }>(
      service.db,
      "SELECT credential_id AS id FROM app_git WHERE app_id = $1",
      [stageId],
    )) as [{ id: number }];
    expect((await service.rest("DELETE", path(`/stages/${stageId}`))).http).to.equal(200);
    expect(await rows(service.db, "SELECT FROM credential WHERE id = $1 AND revoked_at IS NULL", [id])).to.have.length(
      0,
    );
  });

  it("verifies the webhooks of GitLab and Gitea as those send them", async () => {
    const event = pushed("refs/heads/other");
    const gitlab = (await connect({ ...fields(), provider: "gitlab", newSecret: true })).body.webhookSecret;
    const token = (value: string) => webhook("x", event, { "x-gitlab-token": value });
    expect([(await token(gitlab)).http, (await token(`${gitlab}x`)).http, (await token("")).http]).to.deep.equal([
      200, 401, 401,
    ]);
    const gitea = (await connect({ ...fields(), provider: "gitea", newSecret: true })).body.webhookSecret;
    const signature = (key: string) => createHmac("sha256", key).update(JSON.stringify(event)).digest("hex");
    const signed = (key: string) => webhook("x", event, { "x-gitea-signature": signature(key) });
    expect([(await signed(gitea)).http, (await signed(gitlab)).http]).to.deep.equal([200, 401]);
  });

  longTest("does not repeat the pull of a webhook if a later tag was pulled meanwhile", async () => {
    const { webhookSecret } = (await connect({ ...fields(), newSecret: true })).body;
    const changeClaimTime = (time: string) => rows(service.db, "UPDATE git_webhook SET claimed_at = $1", [time]);
    server.tag("v50", server.commit(project(50)));
    server.onRequest = async () => {
      server.status = 503;
      // Delays the service's next attempt until the test has pulled v51.
      await changeClaimTime("infinity");
    };
    await webhook(webhookSecret, pushed("refs/tags/v50"));
    await until(async () => (await lastPull())?.error === "the Git server responded with the HTTP status 503");
    server.status = null;
    server.onRequest = async () => undefined;
    server.tag("v51", server.commit(project(51)));
    expect((await pull("", { ref: "refs/tags/v51" })).body.pull.published).to.include("first");
    const last = await lastPull();
    await changeClaimTime("-infinity");
    await until(async () => (await rows(service.db, "SELECT FROM git_webhook")).length === 0);
    expect(await lastPull()).to.deep.equal(last);
    const first = (await actions()).find(({ name }: { name: string }) => name === "first");
    expect(first.description).to.equal("value 51");
  });

  longTest("gives up a webhook after three interrupted pulls, as the last pull of its connection", async () => {
    await connect();
    const insertClaimed = `INSERT INTO git_webhook (app_id, ref, holder, claimed_at, attempts)
                  VALUES ($1, 'refs/heads/main', gen_random_uuid(), now(), 3) RETURNING id, holder`;
    const { appId } = service;
    await service.db.transaction(async (manager) => {
      const [{ id, holder }] = (await rows<{ id: number; holder: string }>(manager, insertClaimed, [appId])) as [
        { id: number; holder: string },
      ];
      // A process that stops normally calls `returnAttempts`, so that its interrupted pull does not count as an attempt.
      await new GitWebhookQueue({ db: manager as never, holder }).returnAttempts([id]);
      const sql = "SELECT attempts FROM git_webhook WHERE id = $1";
      expect(await rows(manager, sql, [id])).to.deep.equal([{ attempts: 2 }]);
      await rows(manager, "UPDATE git_webhook SET attempts = 3 WHERE id = $1", [id]);
    });
    const last = await until(async () => {
      const found = await lastPull();
      return found?.error?.includes("interrupted") ? found : null;
    });
    expect(last).to.deep.include({ ref: "refs/heads/main", commit: null, published: [] });
    expect(last.error).to.equal(
      "the last attempt of this pull was interrupted, so the service does not repeat the pull; start a pull by hand",
    );
    expect(last.at).to.equal(new Date(last.at).toISOString());
    expect(await rows(service.db, "SELECT FROM git_webhook")).to.have.length(0);
  });

  longTest("keeps the outcome of a pull that ended after the last attempt of a webhook that is given up", async () => {
    await connect();
    const commit = server.commit(project(40));
    const insertClaimed = `INSERT INTO git_webhook (app_id, ref, holder, claimed_at, attempts)
                  VALUES ($1, 'refs/heads/main', gen_random_uuid(), now() - interval '1 minute', 3)`;
    expect((await pull()).http).to.equal(200);
    const outcome = await lastPull();
    expect(outcome).to.deep.include({ commit, error: null });
    await rows(service.db, insertClaimed, [service.appId]);
    await until(async () => (await rows(service.db, "SELECT FROM git_webhook")).length === 0);
    expect(await lastPull()).to.deep.equal(outcome);
  });
});
