/** Tests the command line `svc` on broken connections, behind proxies that respond instead of the service, and with saved sign-ins. */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { createServer, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";
import { createSvcProjects, type RunningCommand } from "../harness/svc-projects.js";
import { until } from "../harness/until.js";

/** Starts a proxy for the service. If `state.answer` is set, it receives the body of each response, and responds to the client. */
async function startProxy(serviceUrl: string) {
  const state = { answer: null as ((reply: ServerResponse, body: Buffer) => unknown) | null, answered: 0 };
  const server = createServer(async (incoming, reply) => {
    const sent = await buffer(incoming);
    const { method, url, headers } = incoming;
    const onward = request(serviceUrl + url, {
      method: method!,
      headers: { ...headers, "accept-encoding": "identity" },
    });
    onward.end(sent);
    const [answer] = await once(onward, "response");
    const body = await buffer(answer);
    state.answered += 1;
    if (state.answer) return state.answer(reply, body);
    return reply
      .writeHead(answer.statusCode, { etag: answer.headers.etag ?? "", "content-type": "application/json" })
      .end(body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, state, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const answerWithPage = (reply: ServerResponse) =>
  reply.writeHead(200, { "content-type": "text/html" }).end("<title>Sign in</title>");
const cutBody = (reply: ServerResponse, body: Buffer) => {
  reply.writeHead(200, { "content-type": "application/json", "content-length": body.length + 1 });
  reply.write(body, () => reply.destroy());
};

describe("connections of the command line", () => {
  let service: TestService;
  let proxy: Awaited<ReturnType<typeof startProxy>>;
  const projects = createSvcProjects(() => service);
  const { json, svc, newProject, start } = projects;

  before(async () => {
    service = await startTestService({ ROLES: "api" });
    proxy = await startProxy(service.url);
  });
  beforeEach(() => {
    proxy.state.answer = null;
    proxy.state.answered = 0;
  });
  after(async () => {
    await projects.cleanUp();
    proxy?.server.closeAllConnections();
    proxy?.server.close();
    await service?.stop();
  });

  it("rejects a page of a proxy and a cut response, and then changes no file", async () => {
    const { folder } = await newProject();
    const options = { env: { SVC_URL: proxy.url } };
    await json(folder, ["push"], options);
    const file = join(folder, "actions/hello/action.ts");
    const before = readFileSync(file, "utf8");
    proxy.state.answer = answerWithPage;
    for (const command of [
      ["pull"],
      ["status"],
      ["diff"],
      ["push", "--yes"],
      ["logs"],
      ["publish", "--yes"],
      ["settings"],
    ]) {
      const { code, err } = await svc(folder, command, options);
      expect([code, err], command[0]).to.match(
        /^1,error http:\S+ did not return JSON with the HTTP status 200 \(got the content type "text\/html"\)/,
      );
    }
    expect(readFileSync(file, "utf8")).to.equal(before);
    proxy.state.answer = cutBody;
    const { code, err } = await svc(folder, ["pull"], options);
    expect([code, err]).to.match(/^1,error http:\S+ did not return a complete response: /);
    expect(readFileSync(file, "utf8")).to.equal(before);
    proxy.state.answer = null;
    expect((await json(folder, ["pull"], options)).pulled).to.deep.equal([
      { kind: "app", name: "app", change: "created" },
    ]);
  });

  it("follows the runs after a cut response, and ends if the sign-in has ended", async () => {
    const { folder } = await newProject();
    await svc(folder, ["login", "--token-stdin"], {
      env: { SVC_TOKEN: "", SVC_URL: proxy.url },
      input: service.tokens.editor,
    });
    const logs: RunningCommand = start(folder, ["logs", "--follow"], { SVC_TOKEN: "", SVC_URL: proxy.url });
    await until(async () => proxy.state.answered === 2);
    proxy.state.answer = cutBody;
    await until(async () => proxy.state.answered > 4);
    expect([logs.child.exitCode, logs.printed()]).to.deep.equal([null, ""]);
    writeFileSync(join(folder, ".config/credentials.json"), "{}");
    await until(async () => logs.printed() !== "");
    expect(logs.printed()).to.equal("error not signed in; run svc login, or set SVC_TOKEN\n");
  });

  it("requests the token of a code less often after a response that is not from the service", async () => {
    const { folder } = await newProject();
    let pages = 0;
    proxy.state.answer = (reply, body) => {
      const answer = JSON.parse(String(body));
      if (answer.device_code) Object.assign(answer, { interval: 0.05, expires_in: 1 });
      else if (!answer.client_id) {
        pages += 1;
        return answerWithPage(reply);
      }
      return reply.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
    };
    const { code, err } = await svc(folder, ["login"], { env: { SVC_TOKEN: "", SVC_URL: proxy.url } });
    expect([code, pages]).to.deep.equal([1, 2]);
    expect(err).to.contain("the code expired");
  });

  /** Signs in by a code, and saves the sign-in in the folder. The saved file says that the access token has expired. */
  async function saveExpiredSignIn(folder: string, app: number, url: string): Promise<void> {
    const send = async (path: string, form: Record<string, string>): Promise<Record<string, string>> =>
      (
        await fetch(`${service.url}/oauth/${path}`, { method: "POST", body: new URLSearchParams(form) })
      ).json() as Promise<Record<string, string>>;
    const grantType = "urn:ietf:params:oauth:grant-type:device_code";
    const registration = {
      ...{ client_name: "svc", grant_types: [grantType, "refresh_token"], token_endpoint_auth_method: "none" },
    };
    const { client_id } = (await service.rest("POST", "/oauth/register", { as: null, body: registration })).body;
    const device = await send("device_authorization", { client_id, scope: "read settings", app: String(app) });
    const body = { allow: true, appId: app, scopes: ["read", "settings"] };
    await service.rest("POST", `/oauth/devices/${device["user_code"]}`, { body });
    const tokens = await send("token", { client_id, grant_type: grantType, device_code: device["device_code"]! });
    const saved = {
      token: tokens["access_token"],
      refreshToken: tokens["refresh_token"],
      clientId: client_id,
      expiresAt: 0,
    };
    const file = join(folder, ".config/credentials.json");
    mkdirSync(join(folder, ".config"), { recursive: true });
    writeFileSync(file, JSON.stringify({ [`${url} ${app}`]: saved }));
  }

  it("renews an expired sign-in once for all requests and commands, and keeps it if a proxy responds", async () => {
    const { folder, app } = await newProject();
    await saveExpiredSignIn(folder, app, proxy.url);
    const env = { SVC_TOKEN: "" };
    proxy.state.answer = answerWithPage;
    const failed = await svc(folder, ["settings"], { env: { ...env, SVC_URL: `${proxy.url}/` } });
    expect([failed.code, failed.err]).to.match(/^1,error http:\S+ did not return JSON/);
    await saveExpiredSignIn(folder, app, service.url);
    const commands = await Promise.all([1, 2, 3].map(() => svc(folder, ["settings"], { env })));
    for (const { code, err } of commands) expect([code, err]).to.deep.equal([0, ""]);
    const file = join(folder, ".config/credentials.json");
    const saved = JSON.parse(readFileSync(file, "utf8"));
    saved[`${service.url} ${app}`].expiresAt = 0;
    writeFileSync(file, JSON.stringify(saved));
    // Creates the lock that a command leaves behind if it is killed while it renews its tokens.
    const { pid } = spawnSync(process.execPath, ["--version"]);
    writeFileSync(`${file}.lock`, String(pid));
    expect((await svc(folder, ["settings"], { env })).code).to.equal(0);
    writeFileSync(file, JSON.stringify(saved).replaceAll(saved[`${service.url} ${app}`].refreshToken, "used"));
    // An old lock is removed also if its process cannot be checked, for example because the process is another user's.
    writeFileSync(`${file}.lock`, "not a process");
    utimesSync(`${file}.lock`, 0, 0);
    const last = start(folder, ["settings"], env);
    await until(async () => last.printed() !== "");
    expect(last.printed()).to.equal("error the session has expired; run svc login\n");
  });

  it("rejects addresses and tokens that no request can have, without their secrets", async () => {
    const { folder } = await newProject();
    for (const url of [`${service.url}/studio#/apps/1`, `${service.url}?canary`, `${service.url}/#token=canary`]) {
      const { code, err } = await svc(folder, ["status"], { env: { SVC_URL: url } });
      expect([code, err]).to.match(
        /^2,error SVC_URL must be an http or https address without a password, query or fragment/,
      );
      expect(err).not.to.contain("canary");
    }
    expect((await svc(folder, ["status"], { env: { SVC_URL: `${service.url}//` } })).code).to.equal(0);
    for (const token of ["canary\ncanary", "canary…"]) {
      const { code, err } = await svc(folder, ["status"], { env: { SVC_TOKEN: token } });
      expect([code, err]).to.match(/^2,error SVC_TOKEN must be one token/);
      expect(err).not.to.contain("canary");
      expect((await svc(folder, ["login", "--token-stdin"], { input: token })).code).to.equal(2);
    }
    expect((await svc(folder, ["status"], { env: { SVC_TOKEN: `${service.tokens.editor}\r\n` } })).code).to.equal(0);
  });
});
