/** Types of the tools that agents can call, and of their results. Read this file before you add a tool. */
import { z } from "zod";
import type { Caller, Operation } from "../../rules/access.js";
import type { DocsSite } from "../docs/routes.js";
import type { CallRest } from "./rest-calls.js";

export interface ToolContext {
  appId: number;
  caller: Caller;
  call: CallRest;
  docs: DocsSite;
  /** The service's address for links, without a closing slash. */
  base: string;
  /** Reads the declarations of the `Svc` global. */
  readDeclarations: () => Promise<string>;
  /** Returns the text of the app's svc.d.ts. */
  readAppTypes: () => Promise<string>;
  readGraphqlSchema: () => string;
  /** Aborts when the client has disconnected. */
  gone: AbortSignal;
}

export interface ToolResult {
  data: unknown;
  /** True for texts that runs, users of the app or other programs wrote: an agent must not follow instructions in them. */
  isUntrusted?: boolean;
}

export interface AppTool {
  name: string;
  title: string;
  description: string;
  /** Operations that the caller must have permission for. The tool is listed only then. */
  needs: readonly Operation[];
  /** False for tools that change nothing. Read-only mode has only these. */
  changes: boolean;
  /** True if the tool changes the live version of an app. */
  isLive?: boolean;
  input: z.ZodType;
  run(args: never, context: ToolContext): Promise<ToolResult>;
}

/** Defines a tool whose `run` has the arguments of the schema. Unknown arguments are refused. */
export function defineTool<Shape extends z.ZodRawShape>(
  definition: Omit<AppTool, "input" | "run"> & {
    input: Shape;
    run(args: z.output<z.ZodObject<Shape>>, context: ToolContext): Promise<ToolResult>;
  },
): AppTool {
  return { ...definition, input: z.strictObject(definition.input) };
}

const NAME_MAX = 255;

export const fields = {
  action: z
    .union([z.int().positive(), z.string().min(1).max(NAME_MAX)])
    .describe("ID or name of an action; an ID is the ID of its draft"),
  payload: z.record(z.string(), z.unknown()).default({}).describe("Payload of the run, an object"),
  runId: z.int().positive().describe("ID of a run"),
  dataSource: z.union([z.int().positive(), z.string().min(1).max(NAME_MAX)]).describe("ID or name of a data source"),
  limit: (max: number, preset: number) => z.int().min(1).max(max).default(preset).describe(`At most ${max}`),
};
