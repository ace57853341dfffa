/** Checks that no log line sets a key that pino writes itself, because programs read a line with a duplicate key in different ways. */
import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";

const SOURCES = fileURLToPath(new URL("../../../src", import.meta.url));
const RESERVED = ["level", "time", "pid", "hostname", "msg"];
const CALL = /\blog\??\.(?:trace|debug|info|warn|error|fatal)\(\s*\{([^}]*)\}/g;

/** Returns the keys of an object literal in source code, shorthand or not. */
const keysOf = (literal: string): string[] =>
  literal
    .split(",")
    .map((part) => part.trim().split(":")[0]!.trim())
    .filter((key) => /^\w+$/.test(key));

const reservedIn = (source: string): string[] =>
  [...source.matchAll(CALL)].flatMap(([, literal]) => keysOf(literal!)).filter((key) => RESERVED.includes(key));

describe("the keys of log lines", () => {
  it("are none of pino's own", () => {
    const files = globSync("**/*.ts", { cwd: SOURCES });
    expect(files).to.have.length.above(300);
    const found = files.flatMap((file) =>
      reservedIn(readFileSync(`${SOURCES}/${file}`, "utf8")).map((key) => `${file}: ${key}`),
    );
    expect(found).to.deep.equal([]);
  });

  it("are found by the check if they are reserved, also in shorthand", () => {
    expect(
      reservedIn('this.options.log.error({ browser: name, pid, runs: 1 }, "the browser ended unexpectedly");'),
    ).to.deep.equal(["pid"]);
    expect(reservedIn('log.warn({\n  level: now,\n  freeMb: 1 }, "x")')).to.deep.equal(["level"]);
  });
});
