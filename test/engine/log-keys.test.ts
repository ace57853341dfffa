/** Checks that no log line sets a key that pino writes itself. Programs differ in how they read duplicate keys. */
import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type AnyNode, parse } from "acorn";
import { full } from "acorn-walk";
import { expect } from "chai";
import { stop, transform } from "esbuild";

const SOURCES = fileURLToPath(new URL("../../../src", import.meta.url));
const RESERVED = ["level", "time", "pid", "hostname", "msg"];
const LEVELS = ["trace", "debug", "info", "warn", "error", "fatal"];

/** True for an expression such as `log`, `plainLog` or `this.options.log`. */
function isLog(node: AnyNode): boolean {
  if (node.type === "MemberExpression") return isLog(node.property);
  return (node.type === "Identifier" || node.type === "PrivateIdentifier") && /log$/i.test(node.name);
}

/** True for an expression such as `log.warn`, `log[level]` or `log.child`. */
function isLogMethod(node: AnyNode): boolean {
  if (node.type !== "MemberExpression" || !isLog(node.object)) return false;
  const { computed, property } = node;
  return computed || (property.type === "Identifier" && [...LEVELS, "child"].includes(property.name));
}

/** Returns the keys that an expression adds to a log line, including keys of spread objects but not of nested ones. */
function keysOf(node: AnyNode | undefined): string[] {
  switch (node?.type) {
    case "ObjectExpression":
      return node.properties.flatMap(keysOf);
    case "SpreadElement":
      return keysOf(node.argument);
    case "LogicalExpression":
      return [...keysOf(node.left), ...keysOf(node.right)];
    case "ConditionalExpression":
      return [...keysOf(node.consequent), ...keysOf(node.alternate)];
    case "Property":
      if (node.key.type === "Literal") return [String(node.key.value)];
      return node.key.type === "Identifier" && !node.computed ? [node.key.name] : [];
    default:
      return [];
  }
}

async function loggedKeys(source: string): Promise<string[]> {
  const tsconfigRaw = { compilerOptions: { experimentalDecorators: true } };
  const { code } = await transform(source, { loader: "ts", tsconfigRaw });
  const keys: string[] = [];
  full(parse(code, { ecmaVersion: "latest", sourceType: "module" }), (node) => {
    if (node.type === "CallExpression" && isLogMethod(node.callee)) keys.push(...keysOf(node.arguments[0]));
  });
  return keys;
}

const listReservedKeys = async (source: string) => (await loggedKeys(source)).filter((key) => RESERVED.includes(key));

describe("the keys of log lines", () => {
  after(() => stop());

  it("are none of pino's own", async () => {
    const files = globSync("**/*.ts", { cwd: SOURCES });
    expect(files).to.have.length.above(300);
    const sources = files
      .map((file) => ({ file, source: readFileSync(`${SOURCES}/${file}`, "utf8") }))
      .filter(({ source }) => /log\b/i.test(source));
    const keys = await Promise.all(sources.map(({ source }) => loggedKeys(source)));
    expect(keys.flat()).to.have.length.above(100);
    const found = keys.flatMap((keysOfFile, at) =>
      keysOfFile.filter((key) => RESERVED.includes(key)).map((key) => `${sources[at]!.file}: ${key}`),
    );
    expect(found).to.deep.equal([]);
  });

  it("are found by the check if they are reserved, also in shorthand, in spread objects and after nested ones", async () => {
    const samples = {
      'this.options.log.error({ browser: name, pid, runs: 1 }, "the browser ended unexpectedly");': ["pid"],
      'log.warn({\n  level: now,\n  freeMb: 1 }, "x")': ["level"],
      'log?.info({ sizes: { a: 1, time: 2 }, run: `${id}`, "msg": text }, "x")': ["msg"],
      'plainLog.warn({ ...(late && { time: at }), ...(own ? { pid } : { hostname }) }, "x")': [
        "time",
        "pid",
        "hostname",
      ],
      'log[level]({ work: () => ({ pid }), time }, "x"); log.child({ pid: 1 })': ["time", "pid"],
      "blog({ pid }); log.warn(`${pid}`); console.warn({ pid })": [],
    };
    for (const [source, keys] of Object.entries(samples))
      expect(await listReservedKeys(source), source).to.deep.equal(keys);
  });
});
