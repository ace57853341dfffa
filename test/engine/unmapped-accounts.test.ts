import { execFileSync } from "node:child_process";
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

describe("a container in which only root has an ID", () => {
  longTest(
    "decodes pictures and bundles packages under root's account, with a warning for each",
    function (this: Mocha.Context) {
      if (process.platform !== "linux") this.skip(); // Only Linux has user namespaces.
      const run = [process.execPath, "--input-type=module", "-e", PROGRAM];
      const output = execFileSync("unshare", ["--user", "--map-root-user", ...run], { cwd: ROOT, encoding: "utf8" });
      const { picture, global, warnings } = JSON.parse(output);
      expect({ picture, global }).to.deep.equal({ picture: "PNG", global: "thing" });
      expect(warnings).to.have.length(2);
      for (const warning of warnings) expect(warning).to.contain("under the service's own account");
    },
  );
});
