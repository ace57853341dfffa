/**
 * Follows README from `git clone` to a signed-in person: its two commands in a new folder, and one click on the printed link. Needs npm's
 * registry. Takes minutes, because it installs all packages.
 */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect } from "chai";
import { blocksIn } from "../docs/pages.js";
import { PASSPHRASE } from "../harness/people.js";
import { freePort, freshFolder, ROOT, reader } from "../harness/reader.js";
import { until } from "../harness/until.js";
import { launchChromium } from "../web/chromium.js";
import { studioPage } from "../web/studio-page.js";

/** Maximum time in milliseconds in which npm installs the packages and the service is compiled. */
const START_LIMIT_MS = 900_000;

/** Variables of this process with which npm reaches its registry: a proxy and certificates. The service reads none of them. */
const NETWORK = Object.fromEntries(
  Object.entries(process.env).filter((variable): variable is [string, string] =>
    /^(?:https?_proxy|no_proxy|npm_config_\w+|NODE_EXTRA_CA_CERTS)$/i.test(variable[0]),
  ),
);

describe("the start of README", function () {
  this.timeout(1_200_000);

  it("has two commands, and lets a person sign in who opens the printed link and fills its form", async () => {
    const [start = ""] = blocksIn("README.md", "sh", 5);
    const commands = start
      .trim()
      .split("\n")
      .map((line) => line.replace(/ +#.*/, ""));
    expect(commands.map((line) => line.split(" ").slice(0, 2).join(" "))).to.deep.equal(["git clone", "npm start"]);

    const home = reader(freshFolder());
    const repository = join(home.folder, "repository");
    execFileSync("git", ["init", "--quiet", "--bare", "--initial-branch=main", repository]);
    execFileSync("git", ["push", "--quiet", repository, "HEAD:refs/heads/main"], { cwd: ROOT });
    const browser = await launchChromium();
    try {
      const startedAt = performance.now();
      const variables = { ...NETWORK, REPOSITORY: repository, PORT: String(await freePort()) };
      const service = await home.start(commands.join("\n"), variables, START_LIMIT_MS);
      const [link] = await until(() => /http:\S+#token=\S+/.exec(service.stderr()));
      const page = await browser.newPage();
      await page.goto(link);
      const studio = studioPage(page);
      const person = { firstName: "Ada", lastName: "Lovelace", email: "ada@example.com", passphrase: PASSPHRASE };
      for (const [name, text] of Object.entries(person)) await studio.replace(`input[name="${name}"]`, text);
      await studio.button("Create the account");
      await page.waitForSelector(".top-bar");
      const session = (await page.evaluate(`fetch("/v1/auth/session").then((answer) => answer.json())`)) as {
        user: { email: string };
      };
      expect(session.user.email).to.equal(person.email);
      console.log(`      from git clone to signed in: ${Math.round((performance.now() - startedAt) / 1000)} s`);
      await service.stop();
    } finally {
      await browser.close();
      home.cleanUp();
    }
  });
});
