/**
 * Remembers the shapes of queries that this process has answered recently: their number, duration and index, by data source. Held in
 * memory, limited in number, without values.
 */
import {
  type CheckedShape,
  indexServesShape,
  type QueryShape,
  shapeOf,
  suggestionFor,
} from "../../rules/entry-query/query-shape.js";
import type { StoredDataSource } from "./data-source-rows.js";
import { columnsOf } from "./index-definitions.js";

const SOURCES_MAX = 200;
const SHAPES_MAX = 30;
/** Number of latest durations from which the p95 of a query shape is computed. */
const TIMES_KEPT = 64;

export interface RecentQuery extends QueryShape {
  count: number;
  p95Ms: number;
  lastAt: string;
  /** Columns of the index that serves the query; null if none does. */
  index: readonly string[] | null;
  /** Columns of an index that would serve the query; null if an index already does, or if none would. */
  suggestion: readonly string[] | null;
}

interface KeptQuery {
  shape: CheckedShape;
  count: number;
  times: Float32Array;
  lastAt: number;
}

/** Returns the value of a key and moves the key to the end; removes the oldest key beyond the limit. */
function newestOf<Value>(map: Map<string, Value>, key: string, max: number, makeQuery: () => Value): Value {
  const value = map.get(key) ?? makeQuery();
  map.delete(key);
  if (map.size >= max) map.delete(map.keys().next().value!);
  map.set(key, value);
  return value;
}

function p95({ times, count }: KeptQuery): number {
  const sortedTimes = times.slice(0, Math.min(count, TIMES_KEPT)).sort();
  return Math.round(sortedTimes[Math.floor(sortedTimes.length * 0.95)]! * 100) / 100;
}

export type RecentQueries = ReturnType<typeof createRecentQueries>;

export function createRecentQueries(now: () => number = Date.now) {
  const bySource = new Map<string, Map<string, KeptQuery>>();
  const keyOf = ({ appId, id }: Pick<StoredDataSource, "appId" | "id">) => `${appId} ${id}`;

  return {
    /** Records a query that was answered or exceeded its time limit. */
    record(source: StoredDataSource, query: unknown, ms: number): void {
      const knownColumns = new Set(source.columns);
      const shape = shapeOf(query, (column) => knownColumns.has(column));
      if (shape === null) return;
      const queryShapes = newestOf(bySource, keyOf(source), SOURCES_MAX, () => new Map<string, KeptQuery>());
      const name = JSON.stringify([shape.where, shape.order, shape.aggregate]);
      const makeQuery = () => ({ shape, count: 0, times: new Float32Array(TIMES_KEPT), lastAt: 0 });
      const stored = newestOf(queryShapes, name, SHAPES_MAX, makeQuery);
      stored.times[stored.count % TIMES_KEPT] = ms;
      stored.count += 1;
      stored.lastAt = now();
    },

    /** Lists query shapes, the latest first. Leaves out queries without a column, because no index could serve them. */
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
          suggestion: index === undefined ? suggestionFor(shape, mayIndex) : null,
        };
      });
    },
  };
}
