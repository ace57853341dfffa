/** Reference page of all limits: value, variable, scope, and what happens above. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as values from "../../limits.js";
import { LIMITS } from "./limit-rows.js";
import { code, page, table } from "./tables.js";

const MB = 1024 * 1024;

function duration(ms: number): string {
  const units: [number, string][] = [
    [86_400_000, "day"],
    [3_600_000, "hour"],
    [60_000, "minute"],
    [1_000, "s"],
  ];
  const [size, unit] = units.find(([one]) => ms % one === 0 && ms >= one) ?? [1, "ms"];
  const count = ms / size;
  return `${count} ${unit}${unit.length > 2 && count !== 1 ? "s" : ""}`;
}

function bytes(count: number): string {
  if (count % MB === 0) return `${(count / MB).toLocaleString("en")} MB`;
  return count % 1024 === 0 ? `${(count / 1024).toLocaleString("en")} KB` : `${count} bytes`;
}

/** A value in the unit of its name. */
function shown(name: string): string {
  const value = (values as Record<string, unknown>)[name];
  if (typeof value !== "number") return code(JSON.stringify(value));
  if (/_MS$/.test(name)) return duration(value);
  if (/BYTES/.test(name) && !/SHARE$/.test(name)) return bytes(value);
  const unit = /_MB$/.test(name) ? " MB" : /SECONDS$/.test(name) ? " s" : "";
  return `${value.toLocaleString("en")}${unit}`;
}

/** Comment of each constant: a comment also stands for the constants that follow it without one. */
function comments(source: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  let comment: string[] = [];
  let isOpen = false;
  for (const line of source.split("\n")) {
    const text = line.trim();
    const name = /^export const (\w+)/.exec(text)?.[1];
    if (name !== undefined) found.set(name, comment.join(" ").trim());
    if (text.startsWith("/**")) comment = [];
    isOpen = isOpen || text.startsWith("/**");
    if (isOpen) comment.push(text.replace("/**", "").replace("*/", "").replace("* ", "").trim());
    if (text.endsWith("*/")) isOpen = false;
  }
  return found;
}

const isVariable = (name: string, config: string): boolean => config.includes(`"${name}"`);

export function limitsPage(root: string): string {
  const config = readFileSync(join(root, "src/config.ts"), "utf8");
  const variable = (name: string) => (isVariable(name, config) ? code(name) : "");
  const sections = Object.entries(LIMITS).map(([subject, rows]) => {
    const cells = Object.entries(rows).map(([name, [meaning, scope, effect]]) => [
      meaning,
      shown(name),
      variable(name),
      scope,
      effect,
    ]);
    return `## ${subject}\n\n${table(["limit", "default", "variable", "scope", "above it"], cells)}`;
  });
  const listed = new Set(Object.values(LIMITS).flatMap((rows) => Object.keys(rows)));
  const others = [...comments(readFileSync(join(root, "src/limits.ts"), "utf8"))].filter(([name]) => !listed.has(name));
  const lead =
    "For everyone who meets a limit, and for operators. A limit with a variable can be changed: [configuration](../operate/operating.md#configuration). Runs at the same time are `RUNNER_CONCURRENCY` in each process; more runs wait in the [queue](../operate/queue.md). What to do about a status: [errors](errors.md).";
  return page("Limits", lead, "`src/limits.ts`", [
    ...sections,
    `## Others\n\n${table(
      ["constant", "value", "note"],
      others.map(([name, note]) => [code(name), shown(name), note]),
    )}`,
  ]);
}
