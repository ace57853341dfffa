/** Validates the options of a query on entries (`find`), except `where`, `order` and `aggregate`, whose compilers validate them. */
import { ActionError } from "../../errors.js";
import { describeValue, isObject } from "../describe-value.js";
import { refuseField } from "../fields.js";
import { parseLimitAndOffset } from "../page.js";
import { createFlatShape, type Shape } from "../unknown-fields.js";
import {
  parseOptionalFlag,
  QUERY_JOINS_MAX,
  requireList,
  requireObject,
  requireQueryText,
  requireWholeNumber,
} from "./checks.js";
import { CURSOR_MAX_CHARACTERS } from "./order.js";
import { parseDocumentPath } from "./path.js";

export const ENTRIES_PER_QUERY_DEFAULT = 1_000;
export const ENTRIES_PER_QUERY_MAX = 10_000;
const JOINED_ENTRIES_DEFAULT = 100;
const ATTRIBUTES_MAX = 500;
const JOIN_PAIRS_MAX = 3;
const JOIN_NAME_MAX_CHARACTERS = 100;

export interface VisibleEntryScope {
  /**
   * True if the caller can see this top-level column. All other columns count as missing everywhere, for example in `where` and results.
   */
  canSeeColumn(column: string): boolean;
  /** Condition that entries must meet besides the caller's `where`; null for none. It may use columns that the caller cannot see. */
  filter: Record<string, unknown> | null;
}

export const UNRESTRICTED_ENTRY_SCOPE: VisibleEntryScope = { canSeeColumn: () => true, filter: null };

export interface FindOptions {
  receivedQuery: unknown;
  where: unknown;
  order: unknown;
  aggregate: unknown;
  attributes: ReadonlySet<string> | null;
  limit: number;
  offset: number;
  includePagination: boolean;
  /**
   * False if the caller set `includePagination` to false. If true, the response has the total number when counting needs no extra query.
   */
  mayPaginate: boolean;
  /** Cursor of the requested page. `true`: the first page, with a cursor for the next one. null: pages by `offset`. */
  cursor: string | true | null;
  joins: readonly JoinOptions[];
}

export interface JoinOptions {
  name: string;
  dataSource: { id: number } | { name: string };
  /** Pairs of column paths: the value at `left` in the entry must equal the one at `right` in the joined entry. */
  on: readonly (readonly [left: string, right: string])[];
  required: boolean;
  /** Result of the join: the joined entries, true if there are any ("has"), their number, or the sum of one of their columns. */
  resultForm: { as: "entries" } | { as: "has" } | { as: "count" } | { as: "sum"; column: string };
  where: unknown;
  order: unknown;
  attributes: ReadonlySet<string> | null;
  limit: number;
}

const JOIN_SHAPE = createFlatShape([
  ...["dataSourceId", "dataSourceName", "on", "required", "has", "count", "sum"],
  ...["where", "attributes", "limit", "order"],
]);

/** Allowed fields of a query. Unknown fields are reported last, after the query is compiled. */
export const QUERY_SHAPE: Shape = {
  fields: {
    ...createFlatShape([
      "type",
      "where",
      "attributes",
      "order",
      "limit",
      "offset",
      "includePagination",
      "aggregate",
      "cursor",
    ]).fields,
    join: { each: JOIN_SHAPE },
  },
};

/** Parses the names of the columns to return. Only top-level columns are valid, with or without the prefix `data.`. */
function readAttributes(value: unknown, fieldPath: string): ReadonlySet<string> | null {
  if (value === undefined || value === null) return null;
  const columns = requireList(value, fieldPath, ATTRIBUTES_MAX).map((element, index) => {
    const path = parseDocumentPath(element, `${fieldPath}[${index}]`, { entryAlias: "" });
    if (path.entryField !== null || path.segments.length > 1)
      refuseField(`${fieldPath}[${index}]`, "the name of a column", element);
    return path.segments[0]!;
  });
  return new Set(columns);
}

function readJoinedSource(join: Record<string, unknown>, fieldPath: string): JoinOptions["dataSource"] {
  const { dataSourceId, dataSourceName } = join;
  if (dataSourceId !== undefined && dataSourceId !== null) {
    // Accepts an ID as text too, because clients may have it from a URL or a form.
    const id =
      typeof dataSourceId === "string" && /^\d{1,10}$/.test(dataSourceId) ? Number(dataSourceId) : dataSourceId;
    return { id: requireWholeNumber(id, `${fieldPath}.dataSourceId`, 1, 2 ** 31 - 1) };
  }
  if (typeof dataSourceName === "string")
    return { name: requireQueryText(dataSourceName, `${fieldPath}.dataSourceName`, 255) };
  return refuseField(fieldPath, 'an object with "dataSourceId" or "dataSourceName"', join);
}

function readJoinPairs(value: unknown, fieldPath: string): JoinOptions["on"] {
  const pairList = isObject(value) ? Object.entries(value) : [];
  if (pairList.length === 0 || pairList.length > JOIN_PAIRS_MAX)
    refuseField(fieldPath, `an object of 1 to ${JOIN_PAIRS_MAX} pairs of columns, such as {"_id": "OrderId"}`, value);
  return pairList.map(([left, right]) => [left, requireQueryText(right, `${fieldPath}.${left}`, 512)] as const);
}

function readResultForm(join: Record<string, unknown>, fieldPath: string): JoinOptions["resultForm"] {
  const { sum } = join;
  const requestedColumns = [
    parseOptionalFlag(join["has"], `${fieldPath}.has`),
    parseOptionalFlag(join["count"], `${fieldPath}.count`),
    sum !== undefined && sum !== null,
  ];
  if (requestedColumns.filter(Boolean).length > 1)
    refuseField(fieldPath, 'an object with only one of "has", "count" and "sum"', join);
  if (requestedColumns[0]) return { as: "has" };
  if (requestedColumns[1]) return { as: "count" };
  return requestedColumns[2]
    ? { as: "sum", column: requireQueryText(sum, `${fieldPath}.sum`, 512) }
    : { as: "entries" };
}

function parseJoin(name: string, value: unknown): JoinOptions {
  const joinPath = `join.${name}`;
  requireQueryText(name, "the name of a join", JOIN_NAME_MAX_CHARACTERS);
  const join = requireObject(value, joinPath);
  return {
    name,
    dataSource: readJoinedSource(join, joinPath),
    on: readJoinPairs(join["on"], `${joinPath}.on`),
    required: parseOptionalFlag(join["required"], `${joinPath}.required`),
    resultForm: readResultForm(join, joinPath),
    where: join["where"],
    order: join["order"],
    attributes: readAttributes(join["attributes"], `${joinPath}.attributes`),
    limit:
      join["limit"] === undefined
        ? JOINED_ENTRIES_DEFAULT
        : requireWholeNumber(join["limit"], `${joinPath}.limit`, 1, ENTRIES_PER_QUERY_DEFAULT),
  };
}

function parseJoins(value: unknown): JoinOptions[] {
  if (value === undefined || value === null) return [];
  if (!isObject(value) || Object.keys(value).length > QUERY_JOINS_MAX)
    refuseField("join", `an object of at most ${QUERY_JOINS_MAX} joins`, value);
  return Object.entries(value).map(([name, join]) => parseJoin(name, join));
}

function parseRowCursor(value: unknown): FindOptions["cursor"] {
  if (value === undefined || value === null || value === false) return null;
  return value === true ? true : requireQueryText(value, "cursor", CURSOR_MAX_CHARACTERS);
}

/**
 * Parses the options of a query. Does not validate `where`, `order` and `aggregate`, which need the columns of the data source.
 * @throws REQUEST_INVALID with the path of the invalid field, the expected and the received value
 */
export function parseFindOptions(value: unknown): FindOptions {
  const options = requireObject(value ?? {}, "the query");
  const parsed = {
    receivedQuery: value,
    where: options["where"],
    order: options["order"],
    aggregate: options["aggregate"] ?? null,
    attributes: readAttributes(options["attributes"], "attributes"),
    ...parseLimitAndOffset(options, ENTRIES_PER_QUERY_DEFAULT, ENTRIES_PER_QUERY_MAX),
    includePagination: parseOptionalFlag(options["includePagination"], "includePagination"),
    mayPaginate: options["includePagination"] !== false,
    cursor: parseRowCursor(options["cursor"]),
    joins: parseJoins(options["join"]),
  };
  if (parsed.cursor !== null && parsed.limit === 0)
    refuseField("limit", "1 or more, because the query has the option cursor", 0);
  if (parsed.cursor !== null && parsed.offset > 0)
    refuseField("offset", "absent, because the query has the option cursor", parsed.offset);
  const forbiddenOption = ["attributes", "order", "join", "cursor", "includePagination"].find((name) => options[name]);
  if (parsed.aggregate !== null && forbiddenOption) {
    const stage = { attributes: "$project", order: "$sort" }[forbiddenOption];
    const remedy = stage === undefined ? "" : `; use the stage ${stage} instead`;
    throw new ActionError(
      "REQUEST_INVALID",
      `${forbiddenOption} must be absent, because the query has the option aggregate (got ${describeValue(options[forbiddenOption])})${remedy}`,
    );
  }
  return parsed;
}
