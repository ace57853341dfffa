/**
 * MCP tools that read the data of an app and the documentation: data sources, names of settings, TypeScript types, docs pages, schedules
 * and access rules.
 */
import { z } from "zod";
import { ActionError } from "../../errors.js";
import { defineMcpTool, MCP_TOOL_INPUT_FIELDS, type McpTool } from "./tool.js";

const APP_ROUTE = "/v1/apps/:appId";
const DATA_SOURCE_ROUTE = `${APP_ROUTE}/data-sources/:ds`;
const TEXT_PART_CHARACTERS = 40_000;

const createReferenceQuery = (dataSource: number | string) => (typeof dataSource === "string" ? { by: "name" } : {});

const getSettingTier = (key: string) =>
  key.startsWith("__") ? "protected" : key.startsWith("_") ? "private" : "public";

const dataTools: McpTool[] = [
  defineMcpTool({
    name: "list_data_sources",
    title: "List data sources",
    description: "Lists the data sources with their columns, access rules, hooks and indexes.",
    requiredOperations: ["readDataSources"],
    changesData: false,
    input: {},
    run: async (_args, { callRest, appId }) => ({
      data: await callRest("GET", `${APP_ROUTE}/data-sources`, { params: { appId } }),
    }),
  }),
  defineMcpTool({
    name: "query_data_source",
    title: "Query a data source",
    description: "Returns entries by a `where` like MongoDB's. See the docs page data-source-queries.",
    requiredOperations: ["readEntries"],
    changesData: false,
    input: {
      dataSource: MCP_TOOL_INPUT_FIELDS.dataSource,
      where: z.record(z.string(), z.unknown()).optional(),
      order: z
        .array(z.tuple([z.string().max(300), z.enum(["ASC", "DESC"])]))
        .max(10)
        .optional(),
      attributes: z.array(z.string().max(300)).max(100).optional().describe("Columns to return"),
      limit: MCP_TOOL_INPUT_FIELDS.limit(100, 20),
      offset: z.int().min(0).max(1_000_000).default(0),
    },
    run: async ({ dataSource, ...query }, { callRest, appId }) => ({
      data: await callRest("POST", `${DATA_SOURCE_ROUTE}/query`, {
        params: { appId, ds: dataSource },
        query: createReferenceQuery(dataSource),
        body: { type: "select", ...query, includePagination: true },
      }),
      isUntrusted: true,
    }),
  }),
  defineMcpTool({
    name: "list_settings",
    title: "List settings",
    description:
      "Lists the keys of the app's settings with their tiers, and the values of public settings. Private and protected values are never returned: code reads them as context.settings[key].",
    requiredOperations: ["readSettings", "readSettingsStatus"],
    changesData: false,
    input: {},
    async run(_args, { callRest, appId }) {
      const values: Record<string, unknown> = await callRest("GET", `${APP_ROUTE}/settings`, { params: { appId } });
      const status = await callRest("GET", `${APP_ROUTE}/settings/status`, { params: { appId } });
      const hiddenKeys = Object.keys(status.configured).filter((key) => status.configured[key] === true);
      const keys = [...new Set([...Object.keys(values), ...hiddenKeys])].sort();
      const settings = keys.map((key) => ({
        key,
        tier: getSettingTier(key),
        ...(getSettingTier(key) === "public" && { value: values[key] }),
      }));
      return { data: { settings }, isUntrusted: true };
    },
  }),
  defineMcpTool({
    name: "test_access_rule",
    title: "Test access rules",
    description:
      "Returns what the access rules of a data source allow to a caller: for each operation, whether it is allowed and which rule decides.",
    requiredOperations: ["readDataSources", "writeDataSources"],
    changesData: false,
    input: {
      dataSource: MCP_TOOL_INPUT_FIELDS.dataSource,
      trial: z
        .record(z.string(), z.unknown())
        .describe(
          "{user, accessRules, where}: caller, rules to try instead of the stored ones, and query; see the docs page data-sources",
        ),
    },
    run: async ({ dataSource, trial }, { callRest, appId }) => ({
      data: await callRest("POST", `${DATA_SOURCE_ROUTE}/try`, {
        params: { appId, ds: dataSource },
        query: createReferenceQuery(dataSource),
        body: trial,
      }),
      isUntrusted: true,
    }),
  }),
];

const triggerTools: McpTool[] = [
  defineMcpTool({
    name: "preview_schedule",
    title: "Preview a schedule",
    description: "Returns the next times of a cron expression.",
    requiredOperations: ["previewSchedule"],
    changesData: false,
    input: {
      frequency: z.string().min(1).max(200).describe("Cron expression of five fields"),
      timezone: z.string().max(100).optional().describe("IANA name, for example Europe/Berlin"),
      count: MCP_TOOL_INPUT_FIELDS.limit(50, 5),
    },
    run: async (query, { callRest, appId }) => ({
      data: await callRest("GET", "/v3/apps/:appId/schedule/preview", { params: { appId }, query }),
    }),
  }),
  defineMcpTool({
    name: "test_trigger",
    title: "Test a log trigger",
    description: "Returns which recent log events the `where` of a log trigger matches.",
    requiredOperations: ["backtestTrigger"],
    changesData: false,
    input: { where: z.record(z.string(), z.unknown()).describe("The where of a log trigger") },
    run: async ({ where }, { callRest, appId }) => ({
      data: await callRest("POST", "/v3/apps/:appId/triggers/backtest", { params: { appId }, body: { where } }),
      isUntrusted: true,
    }),
  }),
];

/** Returns the slug of a docs page from its name, or from its address at this service, with or without `.md` and `#section`. */
const toDocsPageSlug = (page: string, base: string): string =>
  (page.startsWith(`${base}/docs/`) ? page.slice(base.length) : page)
    .split("#", 1)[0]!
    .replace(/^\/?docs\//, "")
    .replace(/\.md$/, "");

/** Returns a part of a page. If the page has several parts, adds their number, because a result of a tool has a maximum length. */
function selectDocsPart(text: string, part: number): string {
  const partCount = Math.ceil(text.length / TEXT_PART_CHARACTERS);
  if (partCount <= 1 && part === 0) return text;
  const selectedText = text.slice(part * TEXT_PART_CHARACTERS, (part + 1) * TEXT_PART_CHARACTERS);
  return `${selectedText}\n\n(This is part ${part} of the parts 0 to ${partCount - 1} of this page.)`;
}

const referenceTools: McpTool[] = [
  defineMcpTool({
    name: "search_docs",
    title: "Search the docs",
    description: "Finds sections of the service's documentation.",
    requiredOperations: [],
    changesData: false,
    input: { query: z.string().min(1).max(200), limit: MCP_TOOL_INPUT_FIELDS.limit(20, 8) },
    run: async ({ query, limit }, { docs }) => ({ data: { sections: await docs.search.find(query, limit) } }),
  }),
  defineMcpTool({
    name: "read_docs",
    title: "Read a page of the docs",
    description: "Returns a page of the documentation as Markdown, a long page in parts; `introduction` is the README.",
    requiredOperations: [],
    changesData: false,
    input: {
      page: z
        .string()
        .max(300)
        .describe("Name of the page, for example actions, or `address` of search_docs; empty for the index"),
      part: z.int().min(0).max(100).default(0).describe("Number of the part, from 0"),
    },
    async run({ page, part }, { docs, serviceUrl: base }) {
      const foundPage = docs.library.findPageBySlug(toDocsPageSlug(page, base));
      if (foundPage) return { data: selectDocsPart(docs.renderMarkdown(foundPage, base), part) };
      const names = docs.library.pages.map(({ slug }) => slug).filter((slug) => slug !== "");
      throw new ActionError(
        "NOT_FOUND",
        `the documentation has no page ${JSON.stringify(page)}; pages: ${names.join(", ")}`,
      );
    },
  }),
  defineMcpTool({
    name: "read_types",
    title: "Read types",
    description:
      "Returns TypeScript declarations in parts: of `Svc`; of this app with its settings, columns and packages (`app`, needs the scope manage); or the GraphQL schema.",
    requiredOperations: [],
    changesData: false,
    input: { of: z.enum(["svc", "app", "graphql"]).default("svc"), part: z.int().min(0).max(100).default(0) },
    async run({ of, part }, { readDeclarations, readAppTypes, readGraphqlSchema }) {
      const typeReaders = { svc: readDeclarations, app: readAppTypes, graphql: async () => readGraphqlSchema() };
      const text = await typeReaders[of]();
      const partCount = Math.ceil(text.length / TEXT_PART_CHARACTERS);
      return {
        data: {
          part,
          parts: partCount,
          text: text.slice(part * TEXT_PART_CHARACTERS, (part + 1) * TEXT_PART_CHARACTERS),
        },
      };
    },
  }),
];

export const dataAndReferenceTools: readonly McpTool[] = [...dataTools, ...triggerTools, ...referenceTools];
