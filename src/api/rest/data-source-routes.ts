/**
 * Part of the route table in rest/routes.ts: data sources (tables of an app) and their entries. entry-files.ts has the imports and exports.
 */

import { LARGE_BODY_MAX_BYTES } from "../../limits.js";
import type { DataSourceView } from "../../operations/data-sources/data-source-rows.js";
import type { Entry } from "../../operations/data-sources/entry.js";
import { refuseField } from "../../rules/fields.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const DATA_SOURCES_ROUTE = "/v1/apps/:appId/data-sources";
const DATA_SOURCE_ROUTE = `${DATA_SOURCES_ROUTE}/:ds`;
const ENTRIES_ROUTE = `${DATA_SOURCE_ROUTE}/entries`;

const replyWithDataSource = (request: RestRequest, dataSource: DataSourceView) =>
  request.setTag(dataSource, { dataSource });
const replyWithEntry = (request: RestRequest, entry: Entry) => request.setTag(entry, entry);

/** Sets the default of `includePagination`: false for queries with `aggregate` or `cursor`, whose results have no total, otherwise true. */
function addPaginationDefault(query: Record<string, unknown>): Record<string, unknown> {
  const { includePagination, aggregate, cursor } = query;
  const hasTotal = (aggregate ?? null) === null && [undefined, null, false].includes(cursor as null);
  return { ...query, includePagination: includePagination ?? hasTotal };
}

/**
 * Reads the `type` of a query: "select" or "delete".
 * @throws REQUEST_INVALID
 */
function parseQueryType(type: unknown): "select" | "delete" {
  if (type === "select" || type === "delete") return type;
  refuseField("type", '"select" or "delete"', type);
}

const sourceRoutes: readonly Route[] = [
  {
    method: "GET",
    path: DATA_SOURCES_ROUTE,
    handle: async ({ dataSources }, request) => ({
      dataSources: await dataSources.dataSources(request.context, request.pathId("appId")),
    }),
  },
  {
    method: "POST",
    path: DATA_SOURCES_ROUTE,
    successStatus: 201,
    handle: async ({ dataSources }, request) =>
      replyWithDataSource(
        request,
        await dataSources.createDataSource(request.context, request.pathId("appId"), request.bodyFields()),
      ),
  },
  {
    method: "GET",
    path: DATA_SOURCE_ROUTE,
    handle: async ({ dataSources }, request) =>
      replyWithDataSource(
        request,
        await dataSources.dataSource(request.context, request.pathId("appId"), request.pathReference("ds")),
      ),
  },
  {
    method: "PUT",
    path: DATA_SOURCE_ROUTE,
    handle: async ({ dataSources }, request) =>
      replyWithDataSource(
        request,
        await dataSources.updateDataSource(
          request.context,
          request.pathId("appId"),
          request.pathReference("ds"),
          request.bodyFields(),
          request.readExpectedVersions(),
        ),
      ),
  },
  {
    method: "DELETE",
    path: DATA_SOURCE_ROUTE,
    handle: async ({ dataSources }, request) => {
      await dataSources.deleteDataSource(
        request.context,
        request.pathId("appId"),
        request.pathReference("ds"),
        request.readExpectedVersions(),
      );
      return { status: "DATA_SOURCE_DELETED" };
    },
  },
  {
    method: "GET",
    path: `${DATA_SOURCE_ROUTE}/queries`,
    handle: async ({ dataSources }, request) => ({
      queries: await dataSources.dataSourceQueries(
        request.context,
        request.pathId("appId"),
        request.pathReference("ds"),
      ),
    }),
  },
  {
    method: "GET",
    path: `${DATA_SOURCE_ROUTE}/versions`,
    handle: async ({ dataSources }, request) => ({
      versions: await dataSources.dataSourceVersions(
        request.context,
        request.pathId("appId"),
        request.pathReference("ds"),
      ),
    }),
  },
  {
    method: "POST",
    path: `${DATA_SOURCE_ROUTE}/versions/:versionId/restore`,
    handle: ({ dataSources }, request) => {
      const ids = [request.pathId("appId"), request.pathReference("ds"), request.pathId("versionId")] as const;
      return dataSources.restoreDataSourceVersion(request.context, ...ids, request.readExpectedVersions());
    },
  },
  {
    method: "POST",
    path: `${DATA_SOURCE_ROUTE}/try`,
    handle: ({ dataSources }, request) =>
      dataSources.tryAccess(
        request.context,
        request.pathId("appId"),
        request.pathReference("ds"),
        request.bodyFields(),
      ),
  },
];

const entryRoutes: readonly Route[] = [
  {
    method: "POST",
    path: ENTRIES_ROUTE,
    successStatus: 201,
    allowsAnonymous: true,
    handle: async ({ entries }, request) =>
      replyWithEntry(
        request,
        await entries.insertEntry(request.context, request.pathId("appId"), request.pathReference("ds"), request.body),
      ),
  },
  {
    method: "GET",
    path: `${ENTRIES_ROUTE}/:entryId`,
    allowsAnonymous: true,
    handle: async ({ entries }, request) =>
      replyWithEntry(
        request,
        await entries.dataSourceEntry(
          request.context,
          request.pathId("appId"),
          request.pathReference("ds"),
          request.pathId("entryId"),
        ),
      ),
  },
  {
    method: "PUT",
    path: `${ENTRIES_ROUTE}/:entryId`,
    allowsAnonymous: true,
    handle: async ({ entries }, request) => {
      const entryTarget = [request.pathId("appId"), request.pathReference("ds"), request.pathId("entryId")] as const;
      return replyWithEntry(
        request,
        await entries.updateEntry(request.context, ...entryTarget, request.body, request.readExpectedVersions()),
      );
    },
  },
  {
    method: "DELETE",
    path: `${ENTRIES_ROUTE}/:entryId`,
    allowsAnonymous: true,
    handle: ({ entries }, request) =>
      entries.deleteEntry(
        request.context,
        request.pathId("appId"),
        request.pathReference("ds"),
        request.pathId("entryId"),
        request.readExpectedVersions(),
      ),
  },
  {
    method: "POST",
    path: `${DATA_SOURCE_ROUTE}/query`,
    allowsAnonymous: true,
    handle: ({ entries }, request) => {
      const dataSourceTarget = [request.context, request.pathId("appId"), request.pathReference("ds")] as const;
      const query = request.bodyFields();
      const type = request.check(() => parseQueryType(query["type"] ?? "select"));
      return type === "delete"
        ? entries.removeMatching(...dataSourceTarget, query)
        : entries.find(...dataSourceTarget, addPaginationDefault(query));
    },
  },
  {
    method: "GET",
    path: `${DATA_SOURCE_ROUTE}/indexes/:columns`,
    allowsAnonymous: true,
    handle: ({ entries }, request) =>
      entries.dataSourceIndexes(
        request.context,
        request.pathId("appId"),
        request.pathReference("ds"),
        request.pathNames("columns"),
      ),
  },
  {
    method: "POST",
    path: `${DATA_SOURCE_ROUTE}/commit`,
    bodyLimit: LARGE_BODY_MAX_BYTES,
    allowsAnonymous: true,
    handle: ({ entries }, request) =>
      entries.commitEntries(request.context, request.pathId("appId"), request.pathReference("ds"), request.body),
  },
];

export const dataSourceRoutes: readonly Route[] = [...sourceRoutes, ...entryRoutes];
