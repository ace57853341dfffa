/** Tests `svc dev` in an empty folder: it starts a service, creates a project, saves drafts, and starts the same service the next time. */
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { createSvcProjects, type RunningCommand } from "../harness/svc-projects.js";
import { until } from "../harness/until.js";

const START_LIMIT_MS = 180_000;

describe("svc dev without a server", function () {
  this.timeout(600_000);
  const folder = mkdtempSync(join(tmpdir(), "svc-empty-"));
  chmodSync(folder, 0o755);
  const projects = createSvcProjects(() => ({ tokens: { editor: "" } }) as never);
  after(async () => {
    await projects.cleanUp();
    rmSync(folder, { recursive: true, force: true });
  });

  async function ready(dev: RunningCommand): Promise<void> {
    const isReady = async () => dev.child.exitCode !== null || /Pushed|has everything already/.test(dev.printed());
    await until(isReady, START_LIMIT_MS);
    expect(dev.child.exitCode, dev.printed()).to.equal(null);
  }
  const target = () => JSON.parse(readFileSync(join(folder, "svc.json"), "utf8"));

  it("starts a service with data in the folder, and the same one the next time", async () => {
    const first = projects.start(folder, ["dev"]);
    await ready(first);
    const { url, app } = target();
    expect(readdirSync(folder)).to.include.members(["actions", "lib", "svc.json", ".svc"]);
    expect((await projects.json(folder, ["run", "hello", "--payload", '{"name": "Ada"}'])).result).to.deep.equal({
      text: "Hello Ada",
    });
    await until(async () => first.printed().includes("greeting Ada"));
    const helper = join(folder, "lib/greeting.ts");
    writeFileSync(helper, readFileSync(helper, "utf8").replace("Hello", "Hi"));
    await until(async () => first.printed().split("Pushed").length === 3);
    await first.end();
    expect(first.child.exitCode, first.printed()).to.equal(0);
    await fetch(`${url}/health/live`).then(
      () => expect.fail("the service still answers"),
      () => undefined,
    );
    const second = projects.start(folder, ["dev"]);
    await ready(second);
    expect(target()).to.deep.equal({ url, app });
    expect((await projects.json(folder, ["run", "hello"])).result).to.deep.equal({ text: "Hi world" });
    await second.end();
  });

  it("starts a project again whose service was deleted", async () => {
    const other = projects.newFolder();
    const first = projects.start(other, ["dev", "--throw-away"], {}, true);
    await ready(first);
    const tokens = join(other, ".config/credentials.json");
    expect(Object.keys(JSON.parse(readFileSync(tokens, "utf8")))).to.have.length(1);
    await first.end();
    expect(first.child.exitCode, first.printed()).to.equal(0);
    expect(JSON.parse(readFileSync(tokens, "utf8"))).to.deep.equal({});
    const second = projects.start(other, ["dev"]);
    await ready(second);
    expect((await projects.json(other, ["run", "hello", "--draft"])).result).to.deep.equal({ text: "Hello world" });
    await second.end();
    const interrupted = projects.start(other, ["dev"], {}, true);
    await until(async () => interrupted.printed().includes("Starting a service"));
    await interrupted.end();
    expect([interrupted.child.exitCode, interrupted.printed()]).to.deep.equal([0, "Starting a service …\n"]);
    const { code, err } = await projects.svc(other, ["dev", "--throw-away"]);
    expect([code, err]).to.match(/^2,error --throw-away is not possible/);
  });

  it("runs tests in a temporary service, without a token or another service, and leaves nothing", async () => {
    const other = projects.newFolder();
    await projects.json(other, ["init", "--url", "http://127.0.0.1:9", "--app", "7"]);
    const services = () => readdirSync(tmpdir()).filter((name) => name.startsWith("svc-test-server-"));
    const before = [services(), readdirSync(other).sort()];
    const { code, out, err } = await projects.svc(other, ["test", "--service", "--json"]);
    expect(code, err).to.equal(0);
    expect(JSON.parse(out).tests).to.deep.equal([{ action: "hello", name: "greets by name", passed: true }]);
    expect([services(), readdirSync(other).sort()]).to.deep.equal(before);
    const interrupted = projects.start(other, ["test", "--service"], {}, true);
    await until(async () => services().length > before[0]!.length);
    await interrupted.end();
    expect([interrupted.child.exitCode, services()]).to.deep.equal([1, before[0]]);
  });

  it("runs tests in a temporary service with a token that cannot create an app, and says so", async () => {
    const other = projects.newFolder();
    // This server answers as the service does to an API token without the permission.
    const server = createServer((_request, response) =>
      response.writeHead(403, { "content-type": "application/json" }).end('{"status":"FORBIDDEN","error":"no"}'),
    );
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await projects.json(other, ["init", "--url", url, "--app", "7"]);
    const { code, out, err } = await projects.svc(other, ["test"], { env: { SVC_TOKEN: "svc_api_x" } });
    server.close();
    expect([code, err]).to.match(
      /^0,This token may not create a temporary app: the tests run in a service on this machine/,
    );
    expect(out).to.include("1 tests passed");
  });

  it("goes from empty folders to a live action and back with two developers, a process for each command", async () => {
    const [first, second] = [projects.newFolder(), projects.newFolder()];
    const firstDev = projects.start(first, ["dev"]);
    await ready(firstDev);
    const { url, app } = JSON.parse(readFileSync(join(first, "svc.json"), "utf8"));
    const saved = JSON.parse(readFileSync(join(first, ".config/credentials.json"), "utf8"));
    const [{ token }] = Object.values(saved) as [{ token: string }];
    const env = { SVC_TOKEN: token };
    const svc = async (args: string[], expected = 0) => {
      const { code, out, err } = await projects.svcProcess(second, args, { env });
      expect(code, `svc ${args.join(" ")}: ${out}${err}`).to.equal(expected);
      return out + err;
    };
    const change = (folder: string, file: string, from: string, to: string) => {
      const text = readFileSync(join(folder, file), "utf8");
      expect(text).to.include(from);
      writeFileSync(join(folder, file), text.replace(from, to));
    };
    const isLive = async (text: string) =>
      expect(JSON.parse(await svc(["run", "hello", "--live", "--json"])).result).to.deep.equal({ text });
    await svc(["init", "--url", url, "--app", String(app)]);
    await svc(["pull"]);
    change(second, "lib/greeting.ts", "Hello", "Hi");
    const secondDev = projects.start(second, ["dev"], env);
    await ready(secondDev);
    await secondDev.end();
    expect(await svc(["test"], 1)).to.include("1 of 1 tests failed");
    change(second, "actions/hello/action.test.ts", "Hello Ada", "Hi Ada");
    await svc(["test"]);
    expect(await svc(["push", "--yes"])).to.include("The server has everything already");
    await svc(["publish", "hello", "--tested", "--with-app", "--yes"]);
    await isLive("Hi world");
    change(second, "lib/greeting.ts", "Hi", "Bye");
    change(second, "actions/hello/action.test.ts", "Hi Ada", "Bye Ada");
    await svc(["push", "--yes"]);
    await isLive("Hi world");
    await svc(["publish", "hello", "--tested", "--yes"]);
    await isLive("Bye world");
    await svc(["rollback", "hello", "--yes"]);
    await isLive("Hi world");
    // The first developer changes the file that the second one has changed. Neither change is lost.
    change(first, "lib/greeting.ts", "Hello", "Welcome");
    await until(async () => firstDev.printed().includes("the server has changed since the last pull"));
    expect(firstDev.printed()).to.include("action hello was changed on the server");
    expect(readFileSync(join(first, "lib/greeting.ts"), "utf8")).to.include("Welcome");
    await isLive("Hi world");
    await firstDev.end();
    expect(firstDev.child.exitCode, firstDev.printed()).to.equal(0);
  });

  it("starts no service in a folder with files that is no project", async () => {
    const other = mkdtempSync(join(tmpdir(), "svc-full-"));
    writeFileSync(join(other, "notes.txt"), "");
    const { code, err } = await projects.svc(other, ["dev"]);
    rmSync(other, { recursive: true });
    expect([code, err]).to.match(/^2,error no server is set; run svc init/);
  });
});
