/**
 * Runs the commands of the documentation page on upgrading. Starts clones of the previous release with data, backs them up, upgrades them,
 * and rolls back. Needs npm's registry and Debian's package `postgresql`. Takes ten minutes or more, because each clone installs its
 * packages twice.
 */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { Client } from "pg";
import { readServiceVersion } from "../../src/version.js";
import { blocksIn } from "../docs/pages.js";
import { type Content, createContent, expectContent } from "../harness/app-content.js";
import { findInstalledVersions, type Server, startPostgresVersion } from "../harness/debian-postgres.js";
import {
  type DocsReader,
  fillPlaceholders,
  freePort,
  freshFolder,
  lastLine,
  ROOT,
  reader,
  type StartedService,
} from "../harness/reader.js";
import { commitOfReleaseBefore } from "../harness/release-before.js";

const PAGE = "docs/operate/upgrading.md";
/** Maximum time in milliseconds in which npm installs the packages and the service is compiled. */
const START_LIMIT_MS = 900_000;

/** Variables of this process with which npm reaches its registry: a proxy and certificates. The service reads none of them. */
const NETWORK = Object.fromEntries(
  Object.entries(process.env).filter((variable): variable is [string, string] =>
    /^(?:https?_proxy|no_proxy|npm_config_\w+|NODE_EXTRA_CA_CERTS)$/i.test(variable[0]),
  ),
);
const git = (...words: string[]) => execFileSync("git", words, { cwd: ROOT, encoding: "utf8" }).trim();

describe("the page on upgrading", function () {
  this.timeout(3_600_000);
  const [release, backup, , , upgrade, systemd, , ready, , back, putBack, restoreDump, copyData, dump] = blocksIn(
    PAGE,
    "sh",
    14,
  ) as string[];
  const [releaseBefore, thisRelease] = [commitOfReleaseBefore(), git("rev-parse", "HEAD")];
  const home = reader(freshFolder());
  const upstream = join(home.folder, "upstream");
  const [first, second, third] = ["first", "second", "third"].map((name) => reader(join(home.folder, name)));
  const started = new Set<StartedService>();

  const publish = (commit: string) => git("push", "--quiet", upstream, `${commit}:refs/heads/main`);
  const urlOf = (port: number) => `http://127.0.0.1:${port}`;
  const dataOf = ({ folder }: DocsReader) => join(folder, ".data");
  const tokenOf = (of: DocsReader): string =>
    JSON.parse(readFileSync(join(dataOf(of), "credentials.json"), "utf8")).tokens.editor;
  /** Returns the version and the commit that the page's first block prints. */
  const releaseOf = async (of: DocsReader) => (await of.paste(release!)).trim().split("\n");
  const releaseServedBy = async (port: number) =>
    /^svc_build_info\{version="(.*)"\} 1$/m.exec(await (await fetch(`${urlOf(port)}/metrics`)).text())?.[1];

  async function start(of: DocsReader, command: string, variables: Record<string, string>): Promise<StartedService> {
    const service = await of.start(command, { ...NETWORK, ...variables }, START_LIMIT_MS);
    started.add(service);
    return service;
  }
  async function stop(service: StartedService): Promise<void> {
    started.delete(service);
    await service.stop();
  }

  before(async () => {
    git("init", "--quiet", "--bare", "--initial-branch=main", upstream);
    publish(releaseBefore);
    await home.paste("git clone --quiet upstream first");
  });
  after(async () => {
    await Promise.all([...started].map(stop));
    for (const docsReader of [first!, second!, third!, home]) docsReader.cleanUp();
  });

  describe("with one process", () => {
    let content: Content;
    let token: string;
    let port: number;

    async function expectServed(command: string, whileItRuns = async () => {}): Promise<void> {
      const service = await start(first!, command, { PORT: String(port) });
      await expectContent(urlOf(port), token, content);
      await whileItRuns();
      await stop(service);
    }

    it("starts from the previous release, which gets data and is copied", async () => {
      const { version } = JSON.parse(git("show", `${releaseBefore}:package.json`));
      expect(await releaseOf(first!)).to.deep.equal([version, releaseBefore]);
      port = await freePort();
      const service = await start(first!, "npm start", { PORT: String(port) });
      token = tokenOf(first!);
      content = await createContent(urlOf(port), token);
      await expectContent(urlOf(port), token, content);
      await stop(service);
      await first!.paste(copyData!);
      // The next part of the page needs two more machines with a compiled checkout of the previous release.
      await home.paste("cp -a first second && rm -r second/.data second/data-before-the-upgrade && cp -a second third");
    });

    it("leads to this release, with the same data, with a backup while it runs", async () => {
      publish(thisRelease);
      await expectServed(upgrade!, async () => {
        expect(await releaseOf(first!)).to.deep.equal([readServiceVersion(), thisRelease]);
        expect(await releaseServedBy(port)).to.equal(readServiceVersion());
        expect(lastLine(await first!.paste(backup!, NETWORK)).files).to.equal(1);
      });
    });

    it("leads back to the previous release, which runs with the newer schema", async () => {
      await expectServed(fillPlaceholders(back!, { "OLD_COMMIT=…": `OLD_COMMIT=${releaseBefore}` }));
    });

    it("leads back to the copied data", async () => {
      await first!.paste(putBack!);
      await expectServed("npm start");
    });
  });

  describe("with two machines on one database", () => {
    let server: Server;
    let variables: Record<string, string>;
    let content: Content;
    let token: string;
    let ports: number[];
    const running = new Map<DocsReader, StartedService>();

    before(async () => {
      const [version] = findInstalledVersions();
      if (version === undefined) throw new Error("install Debian's package postgresql: the page uses its pg_dump");
      server = await startPostgresVersion(version);
      variables = { DATABASE_URL: server.url, SETTINGS_KEY: randomBytes(32).toString("base64") };
      ports = [await freePort(), await freePort()];
      // Links the media folders of both machines to one folder, which stands for the shared volume.
      const [data, otherData] = [dataOf(second!), dataOf(third!)];
      await home.paste(`mkdir -p ${data}/media ${otherData} && ln -s ${data}/media ${otherData}/media`);
    });
    after(async () => {
      await Promise.all([...started].map(stop));
      await server?.stop();
    });

    const startAt = async (at: 0 | 1, command: string) => {
      const of = [second!, third!][at]!;
      running.set(of, await start(of, command, { ...variables, PORT: String(ports[at]) }));
    };
    const stopAt = (at: 0 | 1) => stop(running.get([second!, third!][at]!)!);
    const expectContentAt = (at: 0 | 1) => expectContent(urlOf(ports[at]!), token, content);

    it("writes the database of the previous release into a file", async () => {
      await second!.paste("npm run bootstrap", { ...NETWORK, ...variables });
      token = tokenOf(second!);
      await startAt(0, "npm start");
      content = await createContent(urlOf(ports[0]!), token);
      await expectContentAt(0);
      await stopAt(0);
      await second!.paste(dump!, variables);
    });

    it("upgrades one machine after the other, while the other one serves the same data", async () => {
      await startAt(0, "npm start");
      await startAt(1, "npm start");
      await stopAt(0);
      await expectContentAt(1);
      await startAt(0, upgrade!);
      await second!.paste(fillPlaceholders(ready!, { "http://127.0.0.1:4000": urlOf(ports[0]!) }));
      for (const at of [0, 1] as const) await expectContentAt(at);
      expect(await Promise.all(ports.map(releaseServedBy))).to.deep.equal([readServiceVersion(), undefined]);

      await stopAt(1);
      await expectContentAt(0);
      // The second machine uses systemd: the test runs the page's build command and the start command of the unit.
      const [enter, build] = systemd!.trim().split("\n");
      expect(enter).to.equal("cd /opt/svc-app-actions && systemctl stop svc-app-actions");
      await third!.paste(build!, NETWORK);
      const [, unit] = /^ExecStart=(.*)$/m.exec(
        readFileSync(join(third!.folder, "deploy/svc-app-actions.service"), "utf8"),
      )!;
      await startAt(1, fillPlaceholders(unit!, { "/opt/svc-app-actions": third!.folder }));
      for (const at of [0, 1] as const) await expectContentAt(at);
      expect(await Promise.all(ports.map(releaseServedBy))).to.deep.equal([readServiceVersion(), readServiceVersion()]);
      for (const at of [0, 1] as const) await stopAt(at);
    });

    it("restores the file into an empty database, for the previous release", async () => {
      const restored = new URL(server.url);
      restored.pathname = "/restored";
      const admin = new Client({ connectionString: server.url });
      await admin.connect();
      await admin.query("CREATE DATABASE restored").finally(() => admin.end());
      await second!.paste(restoreDump!, { EMPTY_DATABASE_URL: restored.href });
      const PORT = String(await freePort());
      const service = await start(first!, "npm start", {
        ...variables,
        ...{ DATABASE_URL: restored.href, DATA_DIR: dataOf(second!), PORT },
      });
      await expectContent(urlOf(Number(PORT)), token, content);
      await stop(service);
    });
  });
});
