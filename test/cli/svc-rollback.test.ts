/** Tests the draft and the error of `svc rollback` if the service rejects a request of the command, or does not respond to it. */
import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";
import { createSvcProjects, writeProjectFile as write } from "../harness/svc-projects.js";

/** Failure of a request at the proxy: it forwards the request or not, and then responds with 502 or ends the connection. */
interface ProxyFault {
  path: RegExp;
  isForwarded: boolean;
  ending: "502" | "disconnect";
}

/** Starts a proxy for the service. Each request whose path matches `faults[0]` fails as this fault says, and removes it from the list. */
async function startFaultProxy(serviceUrl: string, faults: ProxyFault[]): Promise<Server> {
  const server = createServer((incoming, reply) => {
    const { method, url = "", headers } = incoming;
    const fault = method === "POST" && faults[0]?.path.test(url) ? faults.shift() : undefined;
    const fail = () => {
      if (fault?.ending === "disconnect") reply.destroy();
      else reply.writeHead(502, { "content-type": "text/html" }).end("<h1>Bad gateway</h1>");
    };
    if (fault?.isForwarded === false) return fail();
    const onward = request(serviceUrl + url, { method: method!, headers }, (answer) => {
      if (fault) return void answer.resume().on("end", fail);
      reply.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(reply);
    });
    incoming.pipe(onward);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

const PUBLISH = /\/publish$/;
const RESTORE = /\/restore$/;

describe("svc rollback", () => {
  let service: TestService;
  let proxy: Server;
  const faults: ProxyFault[] = [];
  const projects = createSvcProjects(() => service);
  const { json, svc, newProject } = projects;

  before(async () => {
    service = await startTestService({ ROLES: "api" });
    proxy = await startFaultProxy(service.url, faults);
  });
  afterEach(() => faults.splice(0));
  after(async () => {
    await projects.cleanUp();
    proxy?.close();
    await service?.stop();
  });

  /** Publishes two versions of the action `hello`. Its draft then equals the newer one. Returns the ID of the older version. */
  async function publishTwice() {
    const { folder, app } = await newProject();
    await json(folder, ["push"]);
    await json(folder, ["publish", "--with-app"]);
    write(folder, "lib/greeting.ts", "export const greeting = (name: string): string => `Bye ${name}`;\n");
    await json(folder, ["push"]);
    await json(folder, ["publish"]);
    const { versions } = await json(folder, ["versions", "hello", "--published"]);
    return { folder, app, olderId: versions[1].id as number };
  }

  /** Runs `svc rollback hello` through the proxy, which makes requests fail. Returns the error of the command's JSON output. */
  async function rollBackWith(folder: string, newFaults: ProxyFault[]): Promise<string> {
    faults.push(...newFaults);
    const env = { SVC_URL: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` };
    const { code, out } = await svc(folder, ["rollback", "hello", "--yes", "--json"], { env });
    expect([code, faults], out).to.deep.equal([1, []]);
    const printed = JSON.parse(out);
    expect(printed).to.have.all.keys("error");
    return printed.error;
  }

  const isDraftUnchanged = async (folder: string) => (await json(folder, ["diff"])).differences.length === 0;
  const readLiveId = async (folder: string) =>
    (await json(folder, ["versions", "hello", "--published"])).versions[0].id;

  it("leaves the draft as it is if the service rejects the publication", async () => {
    const { folder, app } = await publishTwice();
    await service.rest("POST", `/v1/apps/${app}/unpublish`);
    const failed = await svc(folder, ["rollback", "hello", "--yes"]);
    expect([failed.code, failed.err]).to.match(/^1,error APP_NOT_PUBLISHED: [^;]*\n$/);
    expect(await isDraftUnchanged(folder)).to.equal(true);
  });

  for (const isForwarded of [false, true])
    for (const ending of ["502", "disconnect"] as const)
      it(`restores the draft, and says that the version may be live: ${ending} ${isForwarded ? "after" : "before"} the publication`, async () => {
        const { folder, olderId } = await publishTwice();
        const error = await rollBackWith(folder, [{ path: PUBLISH, isForwarded, ending }]);
        expect(error).to.match(
          new RegExp(
            `; the draft of hello is unchanged, but version ${olderId} may be live: ` +
              `to see the live version, run svc versions hello --published; to publish version ${olderId}, ` +
              `run svc rollback hello --to ${olderId}$`,
          ),
        );
        expect(await isDraftUnchanged(folder)).to.equal(true);
        expect((await readLiveId(folder)) === olderId).to.equal(isForwarded);
      });

  it("names the version of the former draft if it cannot restore this draft", async () => {
    const { folder, app, olderId } = await publishTwice();
    const error = await rollBackWith(folder, [
      { path: PUBLISH, isForwarded: false, ending: "disconnect" },
      { path: RESTORE, isForwarded: false, ending: "502" },
    ]);
    const [, formerId] = / restore version (\d+) in Studio/.exec(error)!;
    expect(error).to.match(
      new RegExp(
        `; version ${olderId} has replaced the draft of hello, and may be live; ` +
          `the former draft could not be restored \\(HTTP_502: .*\\): to get it back, restore version ${formerId} in Studio; ` +
          `to publish version ${olderId}, run svc rollback hello --to ${olderId}$`,
      ),
    );
    expect(await isDraftUnchanged(folder)).to.equal(false);
    const actions = `/v3/apps/${app}/actions`;
    const [{ id }] = (await service.rest("GET", actions)).body.actions;
    await service.rest("POST", `${actions}/${id}/versions/${formerId}/restore`);
    expect(await isDraftUnchanged(folder)).to.equal(true);
  });

  it("says that the draft may have changed if there is no response to the restore", async () => {
    const { folder, olderId } = await publishTwice();
    const error = await rollBackWith(folder, [{ path: RESTORE, isForwarded: true, ending: "disconnect" }]);
    expect(error).to.match(
      new RegExp(
        `; version ${olderId} may have replaced the draft of hello: if svc versions hello begins with a pre-restore version, ` +
          "restore that version in Studio to get the former draft back$",
      ),
    );
    const [newest] = (await json(folder, ["versions", "hello"])).versions;
    expect(newest.action).to.equal("pre-restore");
  });
});
