import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { longTest } from "../harness/samples.js";

const moduleUrl = (name: string) => JSON.stringify(new URL(`../../src/engine/${name}.js`, import.meta.url).href);
const HARNESS = JSON.stringify(new URL("../harness/npm-registry.js", import.meta.url).href);
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** Program that decodes a picture and bundles a package. It prints the picture's type, the package's global, and the warnings. */
const PROGRAM = `
  import { Readable } from "node:stream";
  import pino from "pino";
  import { PictureProcessor } from ${moduleUrl("pictures")};
  import { Bundler } from ${moduleUrl("bundler")};
  import { createArchive } from ${HARNESS};

  const warnings = [];
  const log = pino({ level: "warn" }, { write: (line) => void warnings.push(JSON.parse(line).msg) });
  const gif = Buffer.from("R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==", "base64");
  const resizing = { width: null, format: "png", quality: 80 };
  const picture = await new PictureProcessor({ log }).resize(Readable.from([gif]), "image/gif", resizing, 10_000);
  const archive = createArchive([
    { path: "package/package.json", content: "{}" },
    { path: "package/index.js", content: "module.exports = 1" },
  ]);
  const thing = { name: "thing", version: "1.0.0", folder: "/node_modules/thing", archive };
  const { global } = await new Bundler({ log, sandbox: true }).bundle([thing]);
  process.stdout.write(JSON.stringify({ picture: picture.subarray(1, 4).toString(), global, warnings }));`;

/** Runs PROGRAM with the command, and checks that it decodes and bundles under root's account, with a warning for each. */
function expectWorkUnderRoot(command: readonly string[]): void {
  const [program, ...args] = [...command, process.execPath, "--input-type=module", "-e", PROGRAM];
  const { picture, global, warnings } = JSON.parse(execFileSync(program!, args, { cwd: ROOT, encoding: "utf8" }));
  expect({ picture, global }).to.deep.equal({ picture: "PNG", global: "thing" });
  expect(warnings).to.have.length(2);
  for (const warning of warnings) expect(warning).to.contain("under the service's own account");
}

describe("a container in which only root has an ID", () => {
  longTest(
    "decodes pictures and bundles packages under root's account, with a warning for each",
    function (this: Mocha.Context) {
      if (process.platform !== "linux") this.skip(); // Only Linux has user namespaces.
      expectWorkUnderRoot(["unshare", "--user", "--map-root-user"]);
    },
  );
});

describe("a container in which only root may run the shell", () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "svc-shell-"));
  });
  after(() => rmSync(folder, { recursive: true }));

  longTest(
    "decodes pictures and bundles packages under root's account, with a warning for each",
    function (this: Mocha.Context) {
      if (process.platform !== "linux") this.skip(); // Only Linux has mount namespaces.
      const shell = join(folder, "sh");
      copyFileSync(realpathSync("/bin/sh"), shell);
      chmodSync(shell, 0o700);
      // Another account than root needs a user namespace to mount. That namespace has an ID only for root.
      const namespaces = process.getuid?.() === 0 ? ["--mount"] : ["--user", "--map-root-user", "--mount"];
      const script = 'mount --bind "$0" /bin/sh && exec "$@"';
      expectWorkUnderRoot(["unshare", ...namespaces, "sh", "-c", script, shell]);
    },
  );
});
