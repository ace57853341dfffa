/** Runs `npm run test:mutation`, which adds small faults to modules: their tests must detect at least 90 % of the faults. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect } from "chai";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const DETECTED_MIN = 0.9;

describe("small faults in rules, access, secrets, leases and limits", () => {
  it("are detected by the tests of their modules, except for at most a tenth", async () => {
    const script = spawn(process.execPath, ["scripts/mutation.mjs"], { cwd: ROOT, stdio: ["ignore", "pipe", "pipe"] });
    const [output, errors] = await Promise.all([text(script.stdout), text(script.stderr), once(script, "close")]);
    console.log(output);
    const [, detected, tried] = /^(\d+) of (\d+) found/m.exec(output) ?? [];
    expect(Number(tried), output + errors).to.be.greaterThan(0);
    expect(Number(detected) / Number(tried), output + errors).to.be.at.least(DETECTED_MIN);
  });
});
