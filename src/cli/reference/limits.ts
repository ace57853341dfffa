/** Reference page of all limits: value, variable, scope, and what happens above. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { COST_MAX } from "../../api/graphql/document-cost.js";
import { SUBSCRIPTIONS_PER_SOCKET } from "../../api/sockets.js";
import { ANALYZED_MAX_CHARACTERS } from "../../engine/browser/mode.js";
import * as limits from "../../limits.js";
import { INDEXES_PER_APP } from "../../operations/data-sources/entry-indexes.js";
import { SCRIPT_MAX_BYTES } from "../../operations/packages/addresses.js";
import { ARCHIVES_MAX_BYTES, PACKAGES_MAX } from "../../operations/packages/package-tree.js";
import { DEPENDENCIES_MAX } from "../../rules/action-fields.js";
import { SOURCE_FILES_MAX, SOURCE_MAX_BYTES } from "../../rules/action-source.js";
import { COLUMNS_PER_ENTRY } from "../../rules/entries/entry-input.js";
import { JOINS_MAX, LIST_MAX, ORDER_MAX, STAGES_MAX } from "../../rules/entry-query/judge.js";
import { ENTRIES_DEFAULT, ENTRIES_MAX } from "../../rules/entry-query/options.js";
import { ATTACHMENTS_MAX, RECIPIENTS_MAX } from "../../rules/message-fields.js";
import { BATCH_MAX } from "../../rules/message-input.js";
import { TRIGGERS_MAX } from "../../rules/trigger-input.js";
import { LIMITS, OTHERS } from "./limit-rows.js";
import { code, page, table } from "./tables.js";

const MB = 1024 * 1024;
/** Limits that stand beside the rules that apply them. */
const OF_RULES = {
  ...{ ANALYZED_MAX_CHARACTERS, ARCHIVES_MAX_BYTES, ATTACHMENTS_MAX, BATCH_MAX, COLUMNS_PER_ENTRY, COST_MAX },
  ...{ DEPENDENCIES_MAX, ENTRIES_DEFAULT, ENTRIES_MAX, INDEXES_PER_APP, JOINS_MAX, LIST_MAX, ORDER_MAX, PACKAGES_MAX },
  ...{ RECIPIENTS_MAX, SCRIPT_MAX_BYTES, SOURCE_FILES_MAX, SOURCE_MAX_BYTES, STAGES_MAX, SUBSCRIPTIONS_PER_SOCKET },
  TRIGGERS_MAX,
};
const VALUES: Readonly<Record<string, unknown>> = { ...limits, ...OF_RULES };

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

const isWindow = (value: unknown): value is { limit: number; windowMs: number } =>
  typeof value === "object" && value !== null && "windowMs" in value;

/** A value in the unit of its name. */
function shown(name: string): string {
  const value = VALUES[name];
  if (isWindow(value)) return `${value.limit.toLocaleString("en")} in ${duration(value.windowMs)}`;
  if (typeof value !== "number") return code(JSON.stringify(value));
  if (/_MS$/.test(name)) return duration(value);
  if (/BYTES/.test(name) && !/SHARE$/.test(name)) return bytes(value);
  const unit = /_MB$/.test(name) ? " MB" : /SECONDS$/.test(name) ? " s" : "";
  return `${value.toLocaleString("en")}${unit}`;
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
  const listed = new Set([...Object.values(LIMITS).flatMap((rows) => Object.keys(rows)), ...Object.keys(OTHERS)]);
  const missing = Object.keys(VALUES).filter((name) => !listed.has(name));
  if (missing.length > 0) throw new Error(`limits without a row in limit-rows.ts: ${missing.join(", ")}`);
  const lead =
    "For everyone who meets a limit, and for operators. A limit with a variable can be changed: [configuration](../operate/operating.md#configuration). Runs at the same time are `RUNNER_CONCURRENCY` in each process; more runs wait in the [queue](../operate/queue.md). What to do about a status: [errors](errors.md).";
  return page("Limits", lead, "`src/limits.ts` and the rules", [
    ...sections,
    `## Others\n\n${table(
      ["constant", "value", "note"],
      Object.entries(OTHERS).map(([name, note]) => [code(name), shown(name), note]),
    )}`,
  ]);
}
