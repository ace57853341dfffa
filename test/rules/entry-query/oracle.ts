/** Runs the same queries on the same documents in the service's SQL and in the libraries sift and mingo, many in one statement. */
import { isDeepStrictEqual } from "node:util";
import { Query as MingoQuery, aggregate as mingoAggregate } from "mingo";
import type { Client } from "pg";
import siftModule from "sift";
import { compileAggregate } from "../../../src/rules/entry-query/aggregate.js";
import { SqlStatement } from "../../../src/rules/entry-query/statement.js";
import { compileWhere } from "../../../src/rules/entry-query/where.js";
import type { Json, Query } from "./generated.js";

type Sift = {
  (query: Query, options: object): (document: unknown) => boolean;
  createEqualsOperation(test: (value: unknown) => boolean, owner: unknown, options: unknown): unknown;
};
const plainSift = siftModule as unknown as Sift;
/** $mod by MongoDB's rule that only numbers have a remainder. sift and mingo convert null, false and lists to numbers. */
const $mod = ([by, rest]: [number, number], owner: unknown, options: unknown) =>
  plainSift.createEqualsOperation((value: unknown) => typeof value === "number" && value % by === rest, owner, options);
/** Compares values deeply. sift's own comparison treats a missing name as null, so {"a": null} finds the object {"c": 1}. */
const compare = (a: unknown, b: unknown) => (a ?? null) === (b ?? null) || isDeepStrictEqual(a, b);
const sift = (query: Query) => plainSift(query, { compare, operations: { $mod } });
const sees = () => true;

/** Returns a list for each query: true for each document that the service's SQL finds. */
export async function foundBySql(
  client: Client,
  documents: readonly Json[],
  queries: readonly Query[],
): Promise<boolean[][]> {
  const statement = new SqlStatement(documents.map((document) => JSON.stringify(document)));
  const source = { documentSql: "e.doc", entryAlias: null, canSeeColumn: sees };
  const conditions = queries.map((query) => compileWhere(query, source, statement));
  const sql = `SELECT ARRAY[${conditions.join(", ")}] AS found FROM unnest($1::jsonb[]) WITH ORDINALITY e(doc, n) ORDER BY n`;
  const { rows } = await client.query<{ found: boolean[] }>(sql, statement.values);
  return queries.map((_, at) => rows.map(({ found }) => found[at]!));
}

/**
 * Matches paths with a number, such as `a.2`. For these paths, mingo has the same results as MongoDB, but sift has others (see
 * docs/reference/data-sources.md).
 */
const PATH_UNLIKE_SIFT = /\.\d/;

export const foundBySift = (documents: readonly Json[], query: Query): boolean[] => documents.map(sift(query));
export function foundByMingo(documents: readonly Json[], query: Query): boolean[] {
  const mingoQuery = new MingoQuery(query as never);
  return documents.map((document) => mingoQuery.test(document as never));
}

export interface Disagreement {
  query: Query;
  document: Json;
  ours: boolean;
  sift: boolean;
}

function valuesAt(value: Json | undefined, path: readonly string[]): (Json | undefined)[] {
  const [name, ...rest] = path;
  if (name === undefined) return [value];
  if (Array.isArray(value) && !/^\d$/.test(name)) return value.flatMap((element) => valuesAt(element, path));
  return typeof value === "object" && value !== null ? valuesAt((value as Record<string, Json>)[name], rest) : [];
}

/**
 * True if a path of the query that ends in a number, such as `a.2`, leads into a text. The library sift then reads a letter of the text, so
 * the test ignores its result.
 */
function readsLetterInSift(document: Json, query: Query): boolean {
  const paths = [...JSON.stringify(query).matchAll(/"((?:\w+\.)+)\d"/g)].map(([, prefix]) =>
    prefix!.slice(0, -1).split("."),
  );
  return paths.some((path) => valuesAt(document, path).some((found) => typeof found === "string"));
}

/**
 * Returns the results of the service's SQL that differ from sift's. If the query has a path with a number, and mingo agrees with the SQL,
 * the result is in `likeMingo`. All others are in `wrong`.
 */
export async function findDisagreements(client: Client, documents: readonly Json[], queries: readonly Query[]) {
  const ours = await foundBySql(client, documents, queries);
  const wrong: Disagreement[] = [];
  const likeMingo: Disagreement[] = [];
  for (const [at, query] of queries.entries()) {
    const expected = foundBySift(documents, query);
    const differing = documents.flatMap((_, n) =>
      ours[at]![n] === expected[n] || readsLetterInSift(documents[n]!, query) ? [] : [n],
    );
    if (differing.length === 0) continue;
    const excused = PATH_UNLIKE_SIFT.test(JSON.stringify(query)) ? foundByMingo(documents, query) : expected;
    for (const n of differing) {
      const disagreement = { query, document: documents[n]!, ours: ours[at]![n]!, sift: expected[n]! };
      if (disagreement.ours === excused[n]) likeMingo.push(disagreement);
      else wrong.push(disagreement);
    }
  }
  return { wrong, likeMingo };
}

export async function aggregatedBySql(
  client: Client,
  documents: readonly Json[],
  stages: readonly Query[],
): Promise<Json[]> {
  const statement = new SqlStatement(documents.map((document) => JSON.stringify(document)));
  const entries =
    "SELECT e.doc AS d, e.n::float8 AS n, 0::bigint AS m FROM unnest($1::jsonb[]) WITH ORDINALITY e(doc, n)";
  const { sql } = compileAggregate(stages, entries, sees, statement);
  const { rows } = await client.query<{ d: Json }>(`SELECT d FROM (${sql}) made ORDER BY n, m`, statement.values);
  return rows.map(({ d }) => d);
}

/** Replaces $convertToNumber, which mingo lacks, by $convert. The result for a boolean or an empty text is null. */
function convertToNumber(expression: unknown): unknown {
  if (Array.isArray(expression)) return expression.map(convertToNumber);
  if (typeof expression !== "object" || expression === null) return expression;
  return Object.fromEntries(
    Object.entries(expression).map(([key, operand]) =>
      key === "$convertToNumber"
        ? [
            "$convert",
            {
              input: {
                $cond: [{ $or: [{ $eq: [{ $type: operand }, "bool"] }, { $eq: [operand, ""] }] }, null, operand],
              },
              to: "double",
              onError: null,
              onNull: null,
            },
          ]
        : [key, convertToNumber(operand)],
    ),
  );
}

export const aggregatedByMingo = (documents: readonly Json[], stages: readonly Query[]): Json[] =>
  mingoAggregate(structuredClone(documents) as never, convertToNumber(stages) as never) as Json[];
