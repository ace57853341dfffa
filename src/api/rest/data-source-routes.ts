/** Data sources and their entries over REST, as rows of the REST table. Imports and exports are in entry-files.ts. */

import { LARGE_BODY_MAX_BYTES } from "../../limits.js";
import type { DataSourceView } from "../../operations/data-sources/data-source-rows.js";
import type { Entry } from "../../operations/data-sources/entry.js";
import { refuseField } from "../../rules/fields.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const SOURCES_ROUTE = "/v1/apps/:appId/data-sources";
const SOURCE = `${SOURCES_ROUTE}/:ds`;
const ENTRIES_ROUTE = `${SOURCE}/entries`;

const replyWithSource = (q: RestRequest, dataSource: DataSourceView) => q.at(dataSource, { dataSource });
const replyWithEntry = (q: RestRequest, entry: Entry) => q.at(entry, entry);

/** Adds `pagination` to the response, unless the query turns it off or has no total. */
function parsePagination(query: Record<string, unknown>): Record<string, unknown> {
  const { includePagination, aggregate, cursor } = query;
  const hasTotal = (aggregate ?? null) === null && [undefined, null, false].includes(cursor as null);
  return { ...query, includePagination: includePagination ?? hasTotal };
}

/** @throws REQUEST_INVALID */
function queryType(type: unknown): "select" | "delete" {
  if (type === "select" || type === "delete") return type;
  refuseField("type", '"select" or "delete"', type);
}

const sourceRoutes: readonly Route[] = [
  {
    method: "GET",
    path: SOURCES_ROUTE,
    answer: async ({ dataSources }, q) => ({ dataSources: await dataSources.dataSources(q.context, q.id("appId")) }),
  },
  {
    method: "POST",
    path: SOURCES_ROUTE,
    http: 201,
    answer: async ({ dataSources }, q) =>
      replyWithSource(q, await dataSources.createDataSource(q.context, q.id("appId"), q.object())),
  },
  {
    method: "GET",
    path: SOURCE,
    answer: async ({ dataSources }, q) =>
      replyWithSource(q, await dataSources.dataSource(q.context, q.id("appId"), q.reference("ds"))),
  },
  {
    method: "PUT",
    path: SOURCE,
    answer: async ({ dataSources }, q) =>
      replyWithSource(
        q,
        await dataSources.updateDataSource(q.context, q.id("appId"), q.reference("ds"), q.object(), q.ifMatch()),
      ),
  },
  {
    method: "DELETE",
    path: SOURCE,
    answer: async ({ dataSources }, q) => {
      await dataSources.deleteDataSource(q.context, q.id("appId"), q.reference("ds"), q.ifMatch());
      return { status: "DATA_SOURCE_DELETED" };
    },
  },
  {
    method: "GET",
    path: `${SOURCE}/queries`,
    answer: async ({ dataSources }, q) => ({
      queries: await dataSources.dataSourceQueries(q.context, q.id("appId"), q.reference("ds")),
    }),
  },
  {
    method: "GET",
    path: `${SOURCE}/versions`,
    answer: async ({ dataSources }, q) => ({
      versions: await dataSources.dataSourceVersions(q.context, q.id("appId"), q.reference("ds")),
    }),
  },
  {
    method: "POST",
    path: `${SOURCE}/versions/:versionId/restore`,
    answer: ({ dataSources }, q) => {
      const ids = [q.id("appId"), q.reference("ds"), q.id("versionId")] as const;
      return dataSources.restoreDataSourceVersion(q.context, ...ids, q.ifMatch());
    },
  },
  {
    method: "POST",
    path: `${SOURCE}/try`,
    answer: ({ dataSources }, q) => dataSources.tryAccess(q.context, q.id("appId"), q.reference("ds"), q.object()),
  },
];

const entryRoutes: readonly Route[] = [
  {
    method: "POST",
    path: ENTRIES_ROUTE,
    http: 201,
    open: true,
    answer: async ({ entries }, q) =>
      replyWithEntry(q, await entries.insertEntry(q.context, q.id("appId"), q.reference("ds"), q.body)),
  },
  {
    method: "GET",
    path: `${ENTRIES_ROUTE}/:entryId`,
    open: true,
    answer: async ({ entries }, q) =>
      replyWithEntry(q, await entries.dataSourceEntry(q.context, q.id("appId"), q.reference("ds"), q.id("entryId"))),
  },
  {
    method: "PUT",
    path: `${ENTRIES_ROUTE}/:entryId`,
    open: true,
    answer: async ({ entries }, q) => {
      const entryTarget = [q.id("appId"), q.reference("ds"), q.id("entryId")] as const;
      return replyWithEntry(q, await entries.updateEntry(q.context, ...entryTarget, q.body, q.ifMatch()));
    },
  },
  {
    method: "DELETE",
    path: `${ENTRIES_ROUTE}/:entryId`,
    open: true,
    answer: ({ entries }, q) =>
      entries.deleteEntry(q.context, q.id("appId"), q.reference("ds"), q.id("entryId"), q.ifMatch()),
  },
  {
    method: "POST",
    path: `${SOURCE}/query`,
    open: true,
    answer: ({ entries }, q) => {
      const entryTarget = [q.context, q.id("appId"), q.reference("ds")] as const;
      const query = q.object();
      const type = q.check(() => queryType(query["type"] ?? "select"));
      return type === "delete"
        ? entries.removeMatching(...entryTarget, query)
        : entries.find(...entryTarget, parsePagination(query));
    },
  },
  {
    method: "GET",
    path: `${SOURCE}/indexes/:columns`,
    open: true,
    answer: ({ entries }, q) =>
      entries.dataSourceIndexes(q.context, q.id("appId"), q.reference("ds"), q.names("columns")),
  },
  {
    method: "POST",
    path: `${SOURCE}/commit`,
    bodyLimit: LARGE_BODY_MAX_BYTES,
    open: true,
    answer: ({ entries }, q) => entries.commitEntries(q.context, q.id("appId"), q.reference("ds"), q.body),
  },
];

export const dataSourceRoutes: readonly Route[] = [...sourceRoutes, ...entryRoutes];
