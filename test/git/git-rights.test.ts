/** Tests the permissions with which a git connection pulls, and input that it rejects. */
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { generateToken, hashToken } from "../../src/operations/access/tokens.js";
import { type GitServer, startGitServer } from "../harness/git-server.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { gitCalls, project, TOKEN } from "./support.js";

describe("a git connection, by rights and input,", () => {
  let service: TestService;
  let server: GitServer;

  before(async () => {
    server = await startGitServer();
    service = await startTestService({ ROLES: "api", ALLOW_PRIVATE_NETWORK: "1" });
    server.commit(project(1));
    await connect();
    expect((await pull()).http).to.equal(200);
  });
  after(async () => {
    await service.stop();
    await server.stop();
  });
  beforeEach(() => {
    server.token = null;
  });

  const { path, fields, connect, pull, lastPull, versions, webhook, pushed } = gitCalls(() => ({ service, server }));

  it("pulls with the rights that the person who connected has now", async () => {
    const person = { firstName: "Ada", lastName: "Lovelace", email: "ada@example.com" };
    const { user } = (await service.rest("POST", "/v1/admin/users", { as: "admin", body: person })).body;
    const token = generateToken("editor");
    const issue = "INSERT INTO credential (kind, hash, person_id) VALUES ('editor', $1, $2)";
    await rows(service.db, issue, [hashToken(token), user.id]);
    const member = path(`/members/${user.id}`);
    await service.rest("PUT", member, { as: "admin", body: { role: "reader" } });
    for (const [method, rest] of [
      ["GET", "/git"],
      ["PUT", "/git"],
      ["DELETE", "/git"],
      ["POST", "/git/pull"],
    ] as const)
      expect(
        (await service.rest(method, path(rest), { as: token, ...(method !== "GET" && { body: fields() }) })).body
          .status,
        rest,
      ).to.equal("FORBIDDEN");
    await service.rest("PUT", member, { as: "admin", body: { role: "editor" } });
    const connected = await service.rest("PUT", path("/git"), { as: token, body: { ...fields(), newSecret: true } });
    expect(connected.body.git.userId).to.equal(user.id);
    server.commit(project(8));
    await service.rest("PUT", member, { as: "admin", body: { role: "reader" } });
    await webhook(connected.body.webhookSecret, pushed("refs/heads/main"));
    const { error } = await until(async () => {
      const last = await lastPull();
      return last?.error ? last : null;
    });
    expect(error).to.equal("permission denied");
    expect((await versions("first"))[0]).not.to.deep.include({ description: "value 8" });
    // Restores the role, and revokes the person's credentials of the kind `editor`, as after a new passphrase.
    await service.rest("PUT", member, { as: "admin", body: { role: "editor" } });
    const reset =
      "UPDATE credential SET revoked_at = now() WHERE person_id = $1 AND kind = 'editor' AND revoked_at IS NULL";
    await rows(service.db, reset, [user.id]);
    await webhook(connected.body.webhookSecret, pushed("refs/heads/main"));
    const ended = await until(async () => ((await lastPull()).error === error ? null : lastPull()));
    expect(ended.error).to.match(/a new passphrase; connect the repository again$/);
  });

  it("explains a repository that cannot be read, and keeps what the app has", async () => {
    await connect({ ...fields(), token: null });
    server.token = TOKEN;
    expect((await pull()).body.error).to.equal("the Git server does not accept the token, or no token is set (401)");
    server.token = null;
    await connect({ ...fields(), url: `${server.url}/none`, token: null });
    expect((await pull()).body).to.deep.include({ status: "GIT_PULL_FAILED" });
    await connect({ ...fields(), url: `${service.url}/graphql`, token: null });
    expect((await pull()).body).to.deep.include({ status: "GIT_PULL_FAILED" });
    await connect({ ...fields(), branch: "none" });
    expect((await pull()).body.error).to.equal("the repository has no branch or tag refs/heads/none");
  });

  it("rejects input by the path of its field, and disconnects", async () => {
    const bad: [body: unknown, error: RegExp][] = [
      [[], /^the Git connection must be an object/],
      [{}, /^provider must be one of github, gitlab, gitea/],
      [{ ...fields(), url: "ssh://git.example/a" }, /^url must be the https or http URL/],
      [{ ...fields(), url: "https://user:secret@git.example/a" }, /^url must be/],
      [{ ...fields(), url: "https://git.example" }, /^url must be/],
      [{ ...fields(), url: `https://git:${TOKEN}@git.example/a` }, /^url must be .* \(got a string\)$/],
      [{ ...fields(), branch: "../x" }, /^branch must be the name of a branch/],
      [{ ...fields(), branch: "-x" }, /^branch must be/],
      [{ ...fields(), branch: "refs/heads/main" }, /^branch must be the name of a branch, without refs\/heads\//],
      [{ ...fields(), branch: "größe" }, /^branch must be .* ASCII letters/],
      [{ ...fields(), folder: "../x" }, /^folder must be a path/],
      [{ ...fields(), tagPattern: "v*\n" }, /^tagPattern must be/],
      [{ ...fields(), tagPattern: "refs/tags/v*" }, /^tagPattern must be the name of a tag, without refs\/tags\//],
      [{ ...fields(), prune: 1 }, /^prune must be true or false/],
      [{ ...fields(), username: "a:b" }, /^username must be/],
      [{ ...fields(), token: "a\r\nx-y: z" }, /^token must be .* \(got a string\)$/],
      [{ ...fields(), tokens: "a" }, /tokens .*token/],
    ];
    for (const [body, error] of bad) {
      const { http, body: answer } = await service.rest("PUT", path("/git"), { body });
      expect([http, answer.status], JSON.stringify(body)).to.deep.equal([400, "REQUEST_INVALID"]);
      expect(answer.error).to.match(error);
    }
    // The service reports unknown fields only if the request has no other fault.
    const stale = { headers: { "if-match": '"none"' }, body: { ...fields(), tokens: "a" } };
    expect((await service.rest("PUT", path("/git"), stale)).body.status).to.equal("RESOURCE_CHANGED");
    await connect({ ...fields(), token: TOKEN });
    expect((await connect({ ...fields(), url: `${server.url}x`, tokens: "a" })).body.error).to.match(
      /^"token" is required/,
    );
    await connect({ ...fields(), token: null });
    const query = `query ($appId: Int!) { gitConnection(appId: $appId) { url hasToken lastPull { error } } }`;
    const { data } = await service.graphql(query, { appId: service.appId });
    expect(data.gitConnection).to.deep.include({ url: server.url, hasToken: false });
    expect((await service.rest("DELETE", path("/git"))).body).to.deep.equal({ status: "GIT_DISCONNECTED" });
    expect((await service.rest("GET", path("/git"))).body).to.deep.equal({ git: null });
    for (const answer of [await service.rest("DELETE", path("/git")), await pull()])
      expect([answer.http, answer.body.status]).to.deep.equal([404, "NOT_FOUND"]);
    const open = "SELECT FROM credential WHERE name = 'git' AND revoked_at IS NULL";
    expect(await rows(service.db, open)).to.have.length(0);
  });
});
