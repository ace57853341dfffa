/** Tests administrators of the service, and role changes of a person who is signed in, with two processes. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { readConfig } from "../../src/config.js";
import { type Service, startService } from "../../src/service.js";
import { createSignedInPerson, PASSPHRASE } from "../harness/people.js";
import { type Answer, startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const PATH = "/v1/admin/administrators";
const outcomeOf = ({ http, body }: Answer) => [http, body.status];

describe("administrators and roles over two processes", () => {
  let service: TestService;
  let second: Service;
  let administrator: { id: number; token: string };
  before(async () => {
    service = await startTestService({ ROLES: "api,runner", ALLOW_PRIVATE_NETWORK: "1" });
    const config = { PORT: "0", DATABASE_URL: service.databaseUrl, DATA_DIR: service.dataDir, ROLES: "api" };
    second = await startService(
      readConfig({ ...config, LOG_LEVEL: "silent", RATE_LIMIT_MANAGE: "0", NPM_PACKAGES: "off" }),
    );
    const { user, token } = await createSignedInPerson(service);
    administrator = { id: user.id, token };
  });
  after(async () => {
    await second.stop();
    await service.stop();
  });

  const as = (token: string, method: string, path: string, body?: object) =>
    service.rest(method, path, { as: token, ...(body && { body }) });
  const atSecond = async (token: string, path: string) =>
    (await fetch(second.url + path, { headers: { "auth-token": token } })).status;

  let made = 0;
  async function person(role: string): Promise<{ id: number; token: string }> {
    made += 1;
    const invitations = `/v1/organizations/${service.organizationId}/invitations`;
    const email = `colleague${made}@example.com`;
    const invited = await as(administrator.token, "POST", invitations, { email, role });
    const accepted = await service.rest("POST", "/v1/auth/invitations/accept", {
      as: null,
      body: {
        ...{ token: String(invited.body.link).split("#token=")[1], firstName: "Grace", lastName: "Hopper" },
        passphrase: PASSPHRASE,
      },
    });
    expect(accepted.http, JSON.stringify(accepted.body)).to.equal(200);
    const token = /auth_token=([^;]*)/.exec(accepted.headers.get("set-cookie")!)![1]!;
    return { id: accepted.body.user.id, token };
  }
  const idsOf = ({ body }: Answer): number[] => body.administrators.map(({ id }: { id: number }) => id);

  it("an administrator adds another one, who is active at once in both processes, and removes one", async () => {
    const other = await person("reader");
    expect(outcomeOf(await as(other.token, "GET", PATH))).to.deep.equal([403, "FORBIDDEN"]);
    const added = await as(administrator.token, "PUT", `${PATH}/${other.id}`);
    expect(idsOf(added)).to.deep.equal([administrator.id, other.id]);
    expect(await atSecond(other.token, PATH)).to.equal(200);
    const again = await as(administrator.token, "PUT", `${PATH}/${other.id}`);
    expect(idsOf(again)).to.deep.equal([administrator.id, other.id]);
    expect(idsOf(await as(other.token, "DELETE", `${PATH}/${other.id}`))).to.deep.equal([administrator.id]);
    expect(await atSecond(other.token, PATH)).to.equal(403);
    const { body } = await as(administrator.token, "GET", `/v1/organizations/${service.organizationId}/audit`);
    const entries = body.entries
      .filter(({ subjectId }: { subjectId: number }) => subjectId === other.id)
      .map(({ type, userId }: { type: string; userId: number }) => [type, userId]);
    expect(entries).to.deep.include.members([
      ["administrator.create", administrator.id],
      ["administrator.delete", other.id],
    ]);
    expect(entries.filter(([type]: [string]) => type === "administrator.create")).to.have.length(1);
  });

  it("keep the last administrator who can sign in, also when two remove each other at once", async () => {
    const alone = await as(administrator.token, "DELETE", `${PATH}/${administrator.id}`);
    expect(outcomeOf(alone)).to.deep.equal([409, "LAST_ADMINISTRATOR"]);
    const other = await person("admin");
    await as(administrator.token, "PUT", `${PATH}/${other.id}`);
    const both = await Promise.all([
      as(administrator.token, "DELETE", `${PATH}/${other.id}`),
      as(other.token, "DELETE", `${PATH}/${administrator.id}`),
    ]);
    expect(both.map(({ http }) => http).sort()).to.deep.equal([200, 403]);
    const left = await service.db.query("SELECT id FROM person WHERE is_administrator");
    expect(left).to.have.length(1);
    if (left[0].id !== administrator.id) await as(other.token, "PUT", `${PATH}/${administrator.id}`);
  });

  it("a removed administrator cannot use an invitation or a reset link from before", async () => {
    const [other, third] = [await person("reader"), await person("reader")];
    await as(administrator.token, "PUT", `${PATH}/${other.id}`);
    const organization = `/v1/organizations/${service.organizationId}`;
    const invitation = { email: "second-address@example.com", role: "owner" };
    const invited = await as(other.token, "POST", `${organization}/invitations`, invitation);
    const reset = await as(other.token, "POST", `${organization}/members/${third.id}/reset-link`);
    expect([invited.http, reset.http]).to.deep.equal([201, 201]);
    expect((await as(administrator.token, "DELETE", `${PATH}/${other.id}`)).http).to.equal(200);
    const tokenIn = ({ body }: Answer) => String(body.link).split("#token=")[1];
    const names = { firstName: "Grace", lastName: "Hopper", passphrase: PASSPHRASE };
    for (const [path, body] of [
      ["/v1/auth/invitations/accept", { token: tokenIn(invited), ...names }],
      ["/v1/auth/reset/confirm", { token: tokenIn(reset), passphrase: PASSPHRASE }],
    ] as const) {
      expect(outcomeOf(await service.rest("POST", path, { as: null, body })), path).to.deep.equal([
        410,
        "LINK_EXPIRED",
      ]);
    }
  });

  it("only a person with an account can become one; unknown IDs are 404", async () => {
    const { body } = await as(administrator.token, "POST", "/v1/admin/users", {
      ...{ firstName: "No", lastName: "Account", email: "none@example.com" },
    });
    const answer = await as(administrator.token, "PUT", `${PATH}/${body.user.id}`);
    expect(outcomeOf(answer)).to.deep.equal([400, "REQUEST_INVALID"]);
    expect(answer.body.error).to.contain("userId must be the ID of a person who can sign in");
    for (const id of ["0", "x", "2000000000"]) {
      expect(outcomeOf(await as(administrator.token, "PUT", `${PATH}/${id}`)), id).to.deep.equal([404, "NOT_FOUND"]);
    }
  });

  it("a removal ends the sessions and tokens of the person in both processes", async () => {
    const someone = await person("editor");
    const scope = `/v1/apps/${service.appId}`;
    const made = await as(administrator.token, "POST", `${scope}/tokens`, { kind: "viewer", userId: someone.id });
    expect(await atSecond(someone.token, "/v1/auth/session")).to.equal(200);
    expect(await atSecond(made.body.token, `${scope}/env.js`)).to.equal(200);
    const members = `/v1/organizations/${service.organizationId}/members`;
    expect((await as(administrator.token, "DELETE", `${members}/${someone.id}`)).http).to.equal(200);
    // The notification reaches the other process only after a moment.
    await until(async () => (await atSecond(someone.token, "/v1/auth/session")) === 401);
    await until(async () => (await atSecond(made.body.token, `${scope}/env.js`)) === 401);
    expect((await as(someone.token, "GET", "/v1/auth/session")).http).to.equal(401);
  });

  it("a run that an editor started ends when the editor becomes a reader, who can read its result but start no other", async () => {
    const someone = await person("editor");
    const actions = `/v3/apps/${service.appId}/actions`;
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const holder = createServer(async (_request, response) => {
      await released;
      response.writeHead(200, { "access-control-allow-origin": "*" }).end("done");
    }).listen(0, "127.0.0.1");
    await once(holder, "listening");
    const { port } = holder.address() as AddressInfo;
    await as(administrator.token, "POST", actions, {
      ...{ name: "long", active: true, triggers: [{ trigger: "manual" }] },
      code: `async function execute() { return (await fetch("http://127.0.0.1:${port}/")).text(); }`,
    });
    const { body } = await as(someone.token, "POST", `${actions}/long/run`, {});
    const run = async () => (await as(someone.token, "GET", `/v3/apps/${service.appId}/runs/${body.runId}`)).body.run;
    await until(async () => (await run()).state === "running");
    const members = `/v1/organizations/${service.organizationId}/members`;
    await as(administrator.token, "PUT", `${members}/${someone.id}`, { role: "reader" });
    expect(outcomeOf(await as(someone.token, "POST", `${actions}/long/run`, {}))).to.deep.equal([403, "FORBIDDEN"]);
    const cancelled = await as(someone.token, "POST", `/v3/apps/${service.appId}/runs/${body.runId}/cancel`);
    expect(outcomeOf(cancelled)).to.deep.equal([403, "FORBIDDEN"]);
    expect((await run()).state).to.equal("running");
    release();
    await until(async () => (await run()).state !== "running");
    expect((await run()).state).to.equal("completed");
    holder.close().closeAllConnections();
  });

  it("failed sign-ins count in both processes: those in one make the account wait in the other", async () => {
    const { email } = await createSignedInPerson(service);
    const attempt = async (url: string, passphrase: string) => {
      const headers = { "content-type": "application/json" };
      const body = JSON.stringify({ email, passphrase });
      return (await fetch(`${url}/v1/auth/sign-in`, { method: "POST", headers, body })).status;
    };
    for (let at = 0; at < 5; at += 1) {
      expect(await attempt(service.url, "not the passphrase")).to.equal(401);
      expect(await attempt(second.url, "not the passphrase")).to.equal(401);
    }
    for (const url of [service.url, second.url]) expect(await attempt(url, PASSPHRASE)).to.equal(429);
  });
});
