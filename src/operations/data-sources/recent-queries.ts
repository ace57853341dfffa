/**
 * Remembers the shapes of recent queries of each data source: how often they ran, how long they took, and which index
 * serves them. A shape is a query without its values. The shapes are only in this process's memory, and their number is
 * limited.
 */
import {
  type CheckedShape,
  indexServesShape,
  type QueryShape,
  queryShapeOf,
  suggestIndexColumns,
} from "../../rules/entry-query/query-shape.js";
import type { StoredDataSource } from "./data-source-rows.js";
import { columnsOf } from "./index-definitions.js";

/** Maximum number of data sources whose queries are remembered. */
const SOURCES_MAX = 200;
/** Maximum number of query shapes of one data source. */
const SHAPES_MAX = 30;
/** Number of latest durations from which the p95 of a query shape is computed. */
const TIMES_KEPT = 64;

export interface RecentQuery extends QueryShape {
  count: number;
  p95Ms: number;
  lastAt: string;
  /** Columns of the index that serves the query; null if none does. */
  index: readonly string[] | null;
  /** Columns of an index that would serve the query; null if an index already serves it, or if no index could. */
  suggestion: readonly string[] | null;
}

interface StoredQuery {
  shape: CheckedShape;
  count: number;
  times: Float32Array;
  lastAt: number;
}

/**
 * Returns the value of a key in a least-recently-used cache. Creates a missing value, and removes the oldest key if the
 * cache is full.
 */
function newestOf<Value>(map: Map<string, Value>, key: string, max: number, makeQuery: () => Value): Value {
  const value = map.get(key) ?? makeQuery();
  map.delete(key);
  if (map.size >= max) map.delete(map.keys().next().value!);
  map.set(key, value);
  return value;
}

function p95({ times, count }: StoredQuery): number {
  const sortedTimes = times.slice(0, Math.min(count, TIMES_KEPT)).sort();
  return Math.round(sortedTimes[Math.floor(sortedTimes.length * 0.95)]! * 100) / 100;
}

export type RecentQueries = ReturnType<typeof createRecentQueries>;

export function createRecentQueries(now: () => number = Date.now) {
  const bySource = new Map<string, Map<string, StoredQuery>>();
  const keyOf = ({ appId, id }: Pick<StoredDataSource, "appId" | "id">) => `${appId} ${id}`;

  return {
    /** Records a query that has finished or exceeded its time limit. @param ms duration in milliseconds */
    record(source: StoredDataSource, query: unknown, ms: number): void {
      const knownColumns = new Set(source.columns);
      const shape = queryShapeOf(query, (column) => knownColumns.has(column));
      if (shape === null) return;
      const queryShapes = newestOf(bySource, keyOf(source), SOURCES_MAX, () => new Map<string, StoredQuery>());
      const name = JSON.stringify([shape.where, shape.order, shape.aggregate]);
      const makeQuery = () => ({ shape, count: 0, times: new Float32Array(TIMES_KEPT), lastAt: 0 });
      const stored = newestOf(queryShapes, name, SHAPES_MAX, makeQuery);
      stored.times[stored.count % TIMES_KEPT] = ms;
      stored.count += 1;
      stored.lastAt = now();
    },

    /**
     * Lists the query shapes of a data source, the most recent first. Leaves out queries without a column in `where` or
     * `order`, because no index could serve them.
     */
    list(source: StoredDataSource): RecentQuery[] {
      const stored = [...(bySource.get(keyOf(source))?.values() ?? [])].reverse();
      const mayIndex = (column: string) => !source.hashedColumns.includes(column);
      return stored.flatMap((storedQuery) => {
        const { shape, count, lastAt } = storedQuery;
        const { where, order, aggregate } = shape;
        if (where.length + order.length === 0) return [];
        const index = source.indexes.find((options) => indexServesShape(columnsOf(options), shape));
        return {
          ...{ where, order, aggregate, count, p95Ms: p95(storedQuery), lastAt: new Date(lastAt).toISOString() },
          index: index === undefined ? null : columnsOf(index),
          suggestion: index === undefined ? suggestIndexColumns(shape, mayIndex) : null,
        };
      });
    },
  };
}
