/** MCP tools that read and write actions: the draft, its diagnostics, its difference from the live version, publishing. */
import { z } from "zod";
import { ActionError } from "../../errors.js";
import { defineMcpTool, MCP_TOOL_INPUT_FIELDS, type McpTool, type McpToolContext } from "./tool.js";

const ACTIONS_ROUTE = "/v3/apps/:appId/actions";
const ACTION_ROUTE = `${ACTIONS_ROUTE}/:id`;

type Action = Record<string, unknown> & { id: number; name: string; updatedAt: string };

/**
 * Finds an action by its ID or name.
 * @throws ACTION_NOT_FOUND
 */
export async function fetchAction({ callRest, appId }: McpToolContext, action: number | string): Promise<Action> {
  if (typeof action === "number")
    return (await callRest("GET", ACTION_ROUTE, { params: { appId, id: action } })).action;
  const foundAction = await findActionByName({ callRest, appId }, action);
  if (!foundAction) throw new ActionError("ACTION_NOT_FOUND", `the app has no action named ${JSON.stringify(action)}`);
  return (await callRest("GET", ACTION_ROUTE, { params: { appId, id: foundAction.id } })).action;
}

async function findActionByName(
  { callRest, appId }: Pick<McpToolContext, "callRest" | "appId">,
  name: string,
): Promise<Action | undefined> {
  // Reads page after page, because a page of large actions has fewer than `limit` items.
  for (let offset = 0; ; ) {
    const query = { search: name, limit: 1000, offset };
    const { actions, pagination } = await callRest("GET", ACTIONS_ROUTE, { params: { appId }, query });
    const action = (actions as Action[]).find((candidate) => candidate.name === name);
    if (action || !pagination.hasMore || actions.length === 0) return action;
    offset += actions.length;
  }
}

const removeCode = ({ code: _code, source: _source, assets: _assets, ...rest }: Action) => rest;

const createStudioLink = ({ serviceUrl: base, appId }: McpToolContext, id: number) =>
  `${base}/studio#/${appId}/actions/${id}`;

/** Returns the difference between the draft and the live version; `isPublished: false` if there is no live version. */
async function compareWithLive({ callRest, appId }: McpToolContext, actionId: number): Promise<unknown> {
  try {
    return await callRest("GET", `${ACTIONS_ROUTE}/:actionId/diff`, { params: { appId, actionId } });
  } catch (error) {
    if (error instanceof ActionError && error.status === "ACTION_NOT_PUBLISHED") return { isPublished: false };
    throw error;
  }
}

const readActionTools: McpTool[] = [
  defineMcpTool({
    name: "list_actions",
    title: "List actions",
    description: "Lists the actions of the app without their code, newest first.",
    requiredOperations: ["listActions"],
    changesData: false,
    input: {
      search: z.string().max(200).optional().describe("Text in the name or description"),
      limit: MCP_TOOL_INPUT_FIELDS.limit(200, 50),
      offset: z.int().min(0).max(1_000_000).default(0),
    },
    async run({ search, limit, offset }, { callRest, appId }) {
      const query = { limit, offset, ...(search !== undefined && { search }) };
      const { actions, pagination } = await callRest("GET", ACTIONS_ROUTE, { params: { appId }, query });
      return { data: { actions: actions.map(removeCode), pagination } };
    },
  }),
  defineMcpTool({
    name: "read_action",
    title: "Read an action",
    description: "Returns the draft of an action with its code, and `updatedAt` for save_draft.",
    requiredOperations: ["listActions", "getAction"],
    changesData: false,
    input: { action: MCP_TOOL_INPUT_FIELDS.action },
    async run({ action }, context) {
      return { data: await fetchAction(context, action) };
    },
  }),
  defineMcpTool({
    name: "check_code",
    title: "Check code",
    description:
      "Checks the code of an action as a save does, without saving it. Returns problems with line and column.",
    requiredOperations: ["checkCode"],
    changesData: false,
    input: {
      code: z.string().max(500_000).describe("JavaScript with one function execute(context)"),
      dependencies: z.array(z.string().max(1000)).max(50).default([]).describe("Packages that the code uses"),
    },
    async run({ code, dependencies }, { callRest, appId }) {
      const body = { code, dependencies };
      return { data: await callRest("POST", `${ACTIONS_ROUTE}/problems`, { params: { appId }, body }) };
    },
  }),
  defineMcpTool({
    name: "diff_action",
    title: "Compare the draft with the live version",
    description: "Returns the fields and the lines of code that publishing this action would change.",
    requiredOperations: ["listActions", "getAction", "compareVersions"],
    changesData: false,
    input: { action: MCP_TOOL_INPUT_FIELDS.action },
    async run({ action }, context) {
      const { id } = await fetchAction(context, action);
      return { data: await compareWithLive(context, id) };
    },
  }),
];

const DRAFT_FIELDS =
  "Fields of the action: code or source, description, environment (server, client, any), triggers, dependencies, frequency, timezone, active, and others that read_action shows";

const writeActionTools: McpTool[] = [
  defineMcpTool({
    name: "save_draft",
    title: "Save a draft",
    description:
      "Creates an action, or updates its draft if one has this name. Live users keep the published version. Pass `ifUpdatedAt` from read_action so that the change of another editor is not overwritten.",
    requiredOperations: ["listActions", "getAction", "createAction", "updateAction"],
    changesData: true,
    input: {
      name: z.string().min(1).max(255),
      fields: z.record(z.string(), z.unknown()).describe(DRAFT_FIELDS),
      ifUpdatedAt: z.iso.datetime().optional().describe("updatedAt of the draft that the change is based on"),
    },
    async run({ name, fields: input, ifUpdatedAt }, context) {
      const { callRest, appId } = context;
      const existingAction = await findActionByName(context, name);
      if (!existingAction && ifUpdatedAt !== undefined)
        throw new ActionError(
          "ACTION_NOT_FOUND",
          `the app has no action named ${JSON.stringify(name)}; to create it, leave out ifUpdatedAt`,
        );
      const headers: Record<string, string> = ifUpdatedAt === undefined ? {} : { "if-match": `"${ifUpdatedAt}"` };
      const { action, warnings = [] } = existingAction
        ? await callRest("PUT", ACTION_ROUTE, { params: { appId, id: existingAction.id }, body: input, headers })
        : await callRest("POST", ACTIONS_ROUTE, { params: { appId }, body: { ...input, name } });
      return {
        data: {
          created: !existingAction,
          action: removeCode(action),
          warnings,
          studio: createStudioLink(context, action.id),
        },
      };
    },
  }),
  defineMcpTool({
    name: "propose_publish",
    title: "Propose a publication",
    description:
      "Returns what publishing would change and a link for a person, who decides in Studio. Publishes nothing. Give the link to your user.",
    requiredOperations: ["listActions", "getAction", "compareVersions"],
    changesData: true,
    input: {
      action: MCP_TOOL_INPUT_FIELDS.action,
      reason: z.string().max(1000).optional().describe("Reason for your user"),
    },
    async run({ action, reason }, context) {
      const { id, name } = await fetchAction(context, action);
      const diff = await compareWithLive(context, id);
      return { data: { action: { id, name }, reason: reason ?? null, approveAt: createStudioLink(context, id), diff } };
    },
  }),
  defineMcpTool({
    name: "publish_action",
    title: "Publish an action",
    description: "Makes the draft the live version at once. Needs a token with the scope publish, and read or manage.",
    requiredOperations: ["listActions", "getAction", "publishAction"],
    changesData: true,
    changesLiveVersion: true,
    input: { action: MCP_TOOL_INPUT_FIELDS.action, ifUpdatedAt: z.iso.datetime().optional() },
    async run({ action, ifUpdatedAt }, context) {
      const { id } = await fetchAction(context, action);
      const headers: Record<string, string> = ifUpdatedAt === undefined ? {} : { "if-match": `"${ifUpdatedAt}"` };
      const publishResult = await context.callRest("POST", `${ACTION_ROUTE}/publish`, {
        params: { appId: context.appId, id },
        headers,
      });
      return { data: { action: removeCode(publishResult.action) } };
    },
  }),
];

export const actionTools: readonly McpTool[] = [...readActionTools, ...writeActionTools];
