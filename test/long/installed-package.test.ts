/**
 * Installs the package that `npm pack` makes of this repository, and uses its `npx svc`. The commands are those of the documentation page
 * about the command line. Needs npm's registry. Takes minutes, because npm installs all packages.
 */
import { execFile } from "node:child_process";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { readServiceVersion } from "../../src/version.js";
import { blocksOf, readPage } from "../docs/pages.js";
import { ROOT } from "../harness/reader.js";
import { startTestService, type TestService } from "../harness/service.js";
import { createSvcProjects } from "../harness/svc-projects.js";

/** Variables and settings with which the machine's npm reaches its registry, and with which the service finds a browser. */
const MACHINE = Object.fromEntries(
  Object.entries(process.env).filter((entry): entry is [string, string] =>
    /^(?:PATH|HOME|https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS|CHROMIUM_PATH|PUPPETEER_\w+)$/i.test(entry[0]),
  ),
);

describe("the package of this repository", function () {
  this.timeout(1_800_000);
  let service: TestService;
  const projects = createSvcProjects(() => service);
  before(async () => {
    service = await startTestService();
  });
  after(async () => {
    await projects.cleanUp();
    await service?.stop();
  });

  it("can be installed in an empty folder, and its npx svc creates, pushes, checks and tests a project", async () => {
    const folder = projects.newFolder();
    const env = {
      ...MACHINE,
      npm_config_userconfig: join(homedir(), ".npmrc"),
      SVC_TOKEN: service.tokens.editor,
      SVC_CONFIG_DIR: join(folder, ".config"),
    };
    const bash = async (commands: string): Promise<string> => {
      const args = ["-e", "-o", "pipefail", "-c", commands];
      return (await promisify(execFile)("bash", args, { cwd: folder, env })).stdout;
    };
    const install = blocksOf(readPage("docs/reference/command-line.md")).find(({ text }) => text.includes("npm pack"))!;
    const commands = install.text.replaceAll("/path/to/svc-app-actions", ROOT).replaceAll("/path/to/shop", folder);
    expect((await bash(commands)).trim().split("\n").at(-1)).to.equal(readServiceVersion());

    const app = await projects.newApp("installed");
    const svc = async (args: string) => JSON.parse(await bash(`npx svc ${args} --yes --json`));
    expect((await svc(`init --url ${service.url} --app ${app}`)).files).to.include("actions/hello/action.ts");
    expect((await svc("push")).plan.created).to.deep.equal([{ kind: "action", name: "hello" }]);
    expect((await svc("check")).errors).to.deep.equal([]);
    // `svc test --service` runs the tests with the service, which the package also contains.
    expect((await svc("test --service")).tests).to.deep.equal([
      { action: "hello", name: "greets by name", passed: true },
    ]);
    expect((await svc("run hello --draft")).result).to.deep.equal({ text: "Hello world" });
  });
});
