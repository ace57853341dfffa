/** Records the tool calls of AI agents. Before a tool runs, the call counts in the app's rate limit, and is written to the audit log. */
import type { Db } from "../../data/database.js";
import type { Caller } from "../../rules/access.js";
import { type NewAuditEntry, recordChange } from "../records/audit.js";
import type { AccessCheckInput, AccessChecks } from "./access-checks.js";

export const TOOL_CALL_AUDIT_TYPE = "app.mcp.call";
const NAME_MAX_CHARACTERS = 100;
/** Maximum number of argument names in an audit entry, because a caller can send any number of unknown arguments. */
const MAX_ARGUMENT_NAMES = 20;
/** Arguments whose values are written to the audit log. Of other arguments, only the names are written: the values may be secrets. */
const RESOURCE_ARGUMENTS = ["action", "name", "runId", "dataSource", "actionId", "page"];

const shortenName = (name: string): string => name.slice(0, NAME_MAX_CHARACTERS).toWellFormed();

function describeArguments(args: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const names = RESOURCE_ARGUMENTS.filter((name) => typeof args[name] === "number" || typeof args[name] === "string");
  const values = names.map((name) => {
    const value = args[name];
    return [name, typeof value === "string" ? shortenName(value) : value];
  });
  const input = Object.keys(args).sort().slice(0, MAX_ARGUMENT_NAMES).map(shortenName);
  return { arguments: input, ...Object.fromEntries(values) };
}

export class ToolCallLog {
  constructor(private readonly options: { db: Db; accessChecks: Pick<AccessChecks, "countToolCall"> }) {}

  /**
   * Counts a tool call and writes its audit entry.
   * @param isRefused true if the tool does not exist or the caller may not use it
   * @throws RATE_LIMIT_EXCEEDED
   */
  async record(
    request: AccessCheckInput & { caller: Caller },
    appId: number,
    tool: string,
    args: Readonly<Record<string, unknown>>,
    { isRefused }: { isRefused: boolean },
  ): Promise<void> {
    const { db, accessChecks } = this.options;
    await accessChecks.countToolCall(request, appId);
    // A rejected call could contain any text. So only the name of its tool is recorded, and none of its arguments.
    const data = isRefused ? { tool: shortenName(tool), refused: true } : { tool, ...describeArguments(args) };
    const auditEntry: NewAuditEntry = { type: TOOL_CALL_AUDIT_TYPE, data };
    await recordChange(db, request.caller, { appId, ...auditEntry });
  }
}
