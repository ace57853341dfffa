/** Tools that read the contents of an app and what code can use: data sources, names of settings, types, the docs, schedules and rules. */
import { z } from "zod";
import { ActionError } from "../../errors.js";
import { type AppTool, defineTool, fields } from "./tool.js";

const APP = "/v1/apps/:appId";
const SOURCE = `${APP}/data-sources/:ds`;
const PART_CHARACTERS = 40_000;

const identifiedByName = (dataSource: number | string) => (typeof dataSource === "string" ? { by: "name" } : {});

const settingTierOf = (key: string) =>
  key.startsWith("__") ? "protected" : key.startsWith("_") ? "private" : "public";

const dataTools: AppTool[] = [
  defineTool({
    name: "list_data_sources",
    title: "List data sources",
    description: "Lists the data sources with their columns, access rules, hooks and indexes.",
    needs: ["readDataSources"],
    changes: false,
    input: {},
    run: async (_args, { call, appId }) => ({
      data: await call("GET", `${APP}/data-sources`, { params: { appId } }),
    }),
  }),
  defineTool({
    name: "query_data_source",
    title: "Query a data source",
    description: "Returns entries by a `where` like MongoDB's. See the docs page data-source-queries.",
    needs: ["readEntries"],
    changes: false,
    input: {
      dataSource: fields.dataSource,
      where: z.record(z.string(), z.unknown()).optional(),
      order: z
        .array(z.tuple([z.string().max(300), z.enum(["ASC", "DESC"])]))
        .max(10)
        .optional(),
      attributes: z.array(z.string().max(300)).max(100).optional().describe("Columns to return"),
      limit: fields.limit(100, 20),
      offset: z.int().min(0).max(1_000_000).default(0),
    },
    run: async ({ dataSource, ...query }, { call, appId }) => ({
      data: await call("POST", `${SOURCE}/query`, {
        params: { appId, ds: dataSource },
        query: identifiedByName(dataSource),
        body: { type: "select", ...query, includePagination: true },
      }),
      isUntrusted: true,
    }),
  }),
  defineTool({
    name: "list_settings",
    title: "List settings",
    description:
      "Lists the keys of the app's settings with their tiers, and the values of public settings. Private and protected values are never returned: code reads them as context.settings[key].",
    needs: ["readSettings", "readSettingsStatus"],
    changes: false,
    input: {},
    async run(_args, { call, appId }) {
      const values: Record<string, unknown> = await call("GET", `${APP}/settings`, { params: { appId } });
      const status = await call("GET", `${APP}/settings/status`, { params: { appId } });
      const hiddenKeys = Object.keys(status.configured).filter((key) => status.configured[key] === true);
      const keys = [...new Set([...Object.keys(values), ...hiddenKeys])].sort();
      const settings = keys.map((key) => ({
        key,
        tier: settingTierOf(key),
        ...(settingTierOf(key) === "public" && { value: values[key] }),
      }));
      return { data: { settings }, isUntrusted: true };
    },
  }),
  defineTool({
    name: "test_access_rule",
    title: "Test access rules",
    description:
      "Returns whether the access rules of a data source allow an operation to a caller, and which rule decides.",
    needs: ["readDataSources", "writeDataSources"],
    changes: false,
    input: {
      dataSource: fields.dataSource,
      trial: z.record(z.string(), z.unknown()).describe("The trial; see the docs page data-sources"),
    },
    run: async ({ dataSource, trial }, { call, appId }) => ({
      data: await call("POST", `${SOURCE}/try`, {
        params: { appId, ds: dataSource },
        query: identifiedByName(dataSource),
        body: trial,
      }),
      isUntrusted: true,
    }),
  }),
];

const triggerTools: AppTool[] = [
  defineTool({
    name: "preview_schedule",
    title: "Preview a schedule",
    description: "Returns the next times of a cron expression.",
    needs: ["previewSchedule"],
    changes: false,
    input: {
      frequency: z.string().min(1).max(200).describe("Cron expression of five fields"),
      timezone: z.string().max(100).optional().describe("IANA name, for example Europe/Berlin"),
      count: fields.limit(50, 5),
    },
    run: async (query, { call, appId }) => ({
      data: await call("GET", "/v3/apps/:appId/schedule/preview", { params: { appId }, query }),
    }),
  }),
  defineTool({
    name: "test_trigger",
    title: "Test a log trigger",
    description: "Returns which recent log events the `where` of a log trigger matches.",
    needs: ["backtestTrigger"],
    changes: false,
    input: { where: z.record(z.string(), z.unknown()).describe("The where of a log trigger") },
    run: async ({ where }, { call, appId }) => ({
      data: await call("POST", "/v3/apps/:appId/triggers/backtest", { params: { appId }, body: { where } }),
      isUntrusted: true,
    }),
  }),
];

const referenceTools: AppTool[] = [
  defineTool({
    name: "search_docs",
    title: "Search the docs",
    description: "Finds sections of the service's documentation.",
    needs: [],
    changes: false,
    input: { query: z.string().min(1).max(200), limit: fields.limit(20, 8) },
    run: async ({ query, limit }, { docs }) => ({ data: { sections: await docs.search.find(query, limit) } }),
  }),
  defineTool({
    name: "read_docs",
    title: "Read a page of the docs",
    description: "Returns a page of the documentation as Markdown; `introduction` is the README.",
    needs: [],
    changes: false,
    input: { page: z.string().max(100).describe("Name of the page, for example actions; empty for the index") },
    async run({ page }, { docs, base }) {
      const foundPage = docs.library.page(page.replace(/^\/docs\//, "").replace(/\.md$/, ""));
      if (foundPage) return { data: docs.markdown(foundPage, base) };
      const names = docs.library.pages.map(({ slug }) => slug).filter((slug) => slug !== "");
      throw new ActionError("NOT_FOUND", `the docs have no page ${JSON.stringify(page)}; pages: ${names.join(", ")}`);
    },
  }),
  defineTool({
    name: "read_types",
    title: "Read types",
    description:
      "Returns TypeScript declarations in parts: of `Svc`; of this app with its settings, columns and packages (`app`, needs the scope manage); or the GraphQL schema.",
    needs: [],
    changes: false,
    input: { of: z.enum(["svc", "app", "graphql"]).default("svc"), part: z.int().min(0).max(100).default(0) },
    async run({ of, part }, { readDeclarations, readAppTypes, readGraphqlSchema }) {
      const readContract = { svc: readDeclarations, app: readAppTypes, graphql: async () => readGraphqlSchema() };
      const text = await readContract[of]();
      const parts = Math.ceil(text.length / PART_CHARACTERS);
      return { data: { part, parts, text: text.slice(part * PART_CHARACTERS, (part + 1) * PART_CHARACTERS) } };
    },
  }),
];

export const dataAndReferenceTools: readonly AppTool[] = [...dataTools, ...triggerTools, ...referenceTools];
