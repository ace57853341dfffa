/**
 * Builds the reference page of all limits: value, environment variable, scope, and what happens above the limit. limits.txt has one row for
 * each limit.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { GRAPHQL_DOCUMENT_LIMITS } from "../../api/graphql/document-form.js";
import { listVariableDescriptions } from "../../config/variables.js";
import { STATUS } from "../../errors.js";
import * as limits from "../../limits.js";
import { ENTRIES_PER_QUERY_MAX } from "../../rules/entry-query/options.js";
import { buildReferencePage, formatInlineCode, formatMarkdownTable } from "./tables.js";

const MB = 1024 * 1024;
const LIMIT_VALUES: Readonly<Record<string, unknown>> = { ...limits };
const OTHER_LIMITS_TITLE = "Others";
const LISTS_TITLE = "Answers and lists";

interface LimitRow {
  /** Path of the file in src/ that defines the limit, without src/; undefined for src/limits.ts. */
  file: string | undefined;
  name: string;
  meaning: string;
  scope: string;
  effect: string;
}

const isConstantName = (word: string): boolean => word !== "" && word === word.toUpperCase();

function parseRow(line: string): LimitRow {
  const separatorIndex = line.indexOf(": ");
  const [name = "", file] = line.slice(0, separatorIndex).split(" ").reverse();
  const [meaning = "", scope = "", effect = ""] = line.slice(separatorIndex + 2).split(" | ");
  if (separatorIndex < 0 || !isConstantName(name) || meaning === "")
    throw new Error(
      `a row of limits.txt must have the form "[file ]NAME: meaning[ | scope[ | what happens above the limit]]" (got ${line})`,
    );
  return { file, name, meaning, scope, effect };
}

export function readLimitRows(root: string): Map<string, LimitRow[]> {
  const rowsBySubject = new Map<string, LimitRow[]>();
  let rows: LimitRow[] = [];
  const text = readFileSync(join(root, "src/cli/reference/limits.txt"), "utf8");
  for (const line of text.split("\n").filter((row) => row !== "" && !row.startsWith("# "))) {
    if (line.startsWith("## ")) {
      rows = [];
      rowsBySubject.set(line.slice(3), rows);
    } else rows.push(parseRow(line));
  }
  return rowsBySubject;
}

/** Computes the value of a constant from its source text. The text must be a product of numbers and of other limits. */
function parseConstant(source: string, name: string, file: string): number {
  const start = source.indexOf(`const ${name} = `);
  if (start < 0)
    throw new Error(
      `src/${file} must define the constant ${name}, because a row of limits.txt names both; correct this row`,
    );
  const text = source.slice(source.indexOf("= ", start) + 2, source.indexOf(";", start));
  const factors = text.split("*").map((word) => Number(LIMIT_VALUES[word.trim()] ?? word.trim().replaceAll("_", "")));
  const value = factors.reduce((product, factor) => product * factor, 1);
  if (Number.isNaN(value))
    throw new Error(
      `${name} in src/${file} must be a product of numbers and of constants in src/limits.ts, because limits.txt names it (got ${text})`,
    );
  return value;
}

function formatDuration(ms: number): string {
  const units: [number, string][] = [
    [86_400_000, "day"],
    [3_600_000, "hour"],
    [60_000, "minute"],
    [1_000, "s"],
  ];
  const [size, unit] = units.find(([unitMs]) => ms % unitMs === 0 && ms >= unitMs) ?? [1, "ms"];
  const count = ms / size;
  return `${count} ${unit}${unit.length > 2 && count !== 1 ? "s" : ""}`;
}

function formatBytes(bytes: number): string {
  if (bytes % MB === 0) return `${(bytes / MB).toLocaleString("en")} MB`;
  return bytes % 1024 === 0 ? `${(bytes / 1024).toLocaleString("en")} KB` : `${bytes} bytes`;
}

const isRateWindow = (value: unknown): value is { limit: number; windowMs: number } =>
  typeof value === "object" && value !== null && "windowMs" in value;

function formatLimit(name: string, value: unknown): string {
  if (isRateWindow(value)) {
    const countPerSecond = (value.limit * 1_000) / value.windowMs;
    return `${value.limit.toLocaleString("en")} at once, then ${countPerSecond.toLocaleString("en")} a second`;
  }
  if (typeof value !== "number") return formatInlineCode(JSON.stringify(value));
  if (/_MS$/.test(name)) return formatDuration(value);
  if (/BYTES/.test(name) && !/SHARE$/.test(name)) return formatBytes(value);
  const unit = /_MB$/.test(name) ? " MB" : /SECONDS$/.test(name) ? " s" : "";
  return `${value.toLocaleString("en")}${unit}`;
}

function describeEffect(effect: string): string {
  if (effect === "OLDEST") return "the oldest are removed";
  return effect.replaceAll(/\b[A-Z_]{6,}\b/g, (name) => {
    const status = STATUS[name as keyof typeof STATUS] as { http: number } | undefined;
    return status ? `${formatInlineCode(name)} (${status.http})` : name;
  });
}

const PAGE_LEAD = `For everyone whose request exceeds a limit, and for operators. An operator can change each limit that has a [variable](variables.md). The page [errors](errors.md) says what to do if a request fails with an error status.

The limits that most apps meet first:

| what | limit |
| --- | --- |
| calls that run actions | ${limits.RATE_LIMIT_RUN} in 60 s for each app: visitors, back ends and people together. [People and tokens have a reserve](../guides/runs-at-once.md) |
| duration of a server action | ${limits.SERVER_TIMEOUT_MS / 1000} s |
| request body, payload included | ${limits.BODY_MAX_BYTES / MB} MB |
| entries that one query returns | ${ENTRIES_PER_QUERY_MAX.toLocaleString("en")} |
| one uploaded file | ${limits.MEDIA_MAX_MB} MB |

The tables below do not contain these limits:

- **Runs at the same time.** A runner (a process that executes runs) executes up to four times \`RUNNER_CONCURRENCY\` runs of all apps at once. One app can have \`RUNNER_CONCURRENCY\` of these runs. On a busy runner, one app can have two, or one. Further runs wait in the [queue](../operate/queue.md).
- **Apps, organizations and people.** Their numbers have no limit.
- **Interval of a schedule.** The service rejects a [schedule](../guides/schedules.md) that is due every minute.
- **Build of an npm package.** A build can take 30 s and 512 MB ([packages from npm](npm-packages.md)).
- **Response of an HTTP trigger.** A response can have about 4.5 MB of binary data, or 6 MB of JSON. The service disconnects clients that read it slowly ([HTTP triggers](http-triggers.md#limits)).
- **Missed live changes.** After a lost connection, the subscription \`dataSourceChanged\` with the argument \`since\` sends the missed changes of the last ten minutes ([data sources](data-sources.md#log-events-and-live-changes)).
- **Verification codes.** The page [verification](verification.md#guarantees-and-limits) lists the rate limits of codes that verify an address.`;

export function buildLimitsPage(root: string): string {
  const variables = new Set(listVariableDescriptions().map(([name]) => name));
  const rowsBySubject = readLimitRows(root);
  const formatRowValue = ({ file, name }: LimitRow) =>
    formatLimit(
      name,
      file ? parseConstant(readFileSync(join(root, "src", file), "utf8"), name, file) : LIMIT_VALUES[name],
    );
  const listedNames = new Set([...rowsBySubject.values()].flat().map(({ name }) => name));
  const missingNames = Object.keys(LIMIT_VALUES).filter((name) => !listedNames.has(name));
  if (missingNames.length > 0)
    throw new Error(`limits.txt must have a row for each limit (missing: ${missingNames.join(", ")})`);
  const sections = [...rowsBySubject].map(([subject, rows]) => {
    if (subject === OTHER_LIMITS_TITLE) {
      const rowCells = rows.map((row) => [formatInlineCode(row.name), formatRowValue(row), row.meaning]);
      return `## ${subject}\n\n${formatMarkdownTable(["constant", "value", "note"], rowCells)}`;
    }
    const cells = rows.map((row) => {
      const variable = !row.file && variables.has(row.name) ? formatInlineCode(row.name) : "";
      return [row.meaning, formatRowValue(row), variable, row.scope, describeEffect(row.effect)];
    });
    const documentLimitRows = Object.entries(GRAPHQL_DOCUMENT_LIMITS).map(([name, max]) => [
      `${name}, in GraphQL`,
      formatLimit("", max),
      "",
      "document",
      describeEffect("REQUEST_INVALID"),
    ]);
    if (subject === LISTS_TITLE) cells.push(...documentLimitRows);
    return `## ${subject}\n\n${formatMarkdownTable(["limit", "default", "variable", "scope", "above it"], cells)}`;
  });
  return buildReferencePage("Limits", PAGE_LEAD, "`src/limits.ts` and the rules", sections);
}
