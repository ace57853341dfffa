/** Tool calls of agents: counts each in the app's rate limit and writes it to the audit log before it runs. */
import type { DataSource } from "typeorm";
import type { Caller } from "../../rules/access.js";
import { type AuditFact, recordChange } from "../records/audit.js";
import type { AccessGate, Visitor } from "./gate.js";

const NAME_MAX_CHARACTERS = 100;
/**
 * Maximum argument names in an audit entry. No tool has more arguments; a caller can send any number of unknown ones.
 */
const NAMES_MAX = 20;
/** Arguments that name a resource. All others are recorded by name only, because values may be secrets. */
const NAMING_ARGUMENTS = ["action", "name", "runId", "dataSource", "actionId", "page"];

export type ToolCalls = ReturnType<typeof createToolCalls>;

const shortenName = (name: string): string => name.slice(0, NAME_MAX_CHARACTERS).toWellFormed();

/** Returns the names of the arguments, and the values of those that name a resource. */
function describeArguments(args: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const names = NAMING_ARGUMENTS.filter((name) => typeof args[name] === "number" || typeof args[name] === "string");
  const values = names.map((name) => {
    const value = args[name];
    return [name, typeof value === "string" ? shortenName(value) : value];
  });
  const input = Object.keys(args).sort().slice(0, NAMES_MAX).map(shortenName);
  return { arguments: input, ...Object.fromEntries(values) };
}

export function createToolCalls({ db, gate }: { db: DataSource; gate: Pick<AccessGate, "countToolCall"> }) {
  return {
    /**
     * Counts a tool call and writes its audit entry.
     * @param isRefused true for a tool that does not exist or that the caller may not use
     * @throws RATE_LIMIT_EXCEEDED
     */
    async record(
      visitor: Visitor & { caller: Caller },
      appId: number,
      tool: string,
      args: Readonly<Record<string, unknown>>,
      { isRefused }: { isRefused: boolean },
    ): Promise<void> {
      await gate.countToolCall(visitor, appId);
      // Resource names are only recorded for tools that exist: a rejected call could contain any text.
      const data = isRefused ? { tool: shortenName(tool), refused: true } : { tool, ...describeArguments(args) };
      const toolCallFact: AuditFact = { type: "app.mcp.call", data };
      await recordChange(db, visitor.caller, { appId, ...toolCallFact });
    },
  };
}
