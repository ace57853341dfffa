/**
 * Records the shapes of recent queries on each data source: how often they ran, how long they took, and which index
 * they can use. A shape is a query without its values. Stores a limited number of shapes in the memory of this process.
 */
import {
  canIndexSpeedUpQueries,
  createQueryShape,
  type DetailedQueryShape,
  type QueryShape,
  suggestIndexColumns,
} from "../../rules/entry-query/query-shape.js";
import type { StoredDataSource } from "./data-source-rows.js";
import { listIndexColumnPaths } from "./index-definitions.js";

const MAX_RECORDED_SOURCES = 200;
const MAX_SHAPES_PER_SOURCE = 30;
/** Number of latest durations of a query shape from which the 95th percentile is computed. */
const MAX_RECORDED_DURATIONS = 64;

export interface RecentQuery extends QueryShape {
  count: number;
  p95Ms: number;
  lastAt: string;
  /** Columns of the index that the query can use; null if the query can use no index. */
  index: readonly string[] | null;
  /** Columns of an index that would make the query faster. Null if the query can already use an index, or if no index would help. */
  suggestion: readonly string[] | null;
}

interface RecordedQuery {
  shape: DetailedQueryShape;
  count: number;
  durationsMs: Float32Array;
  lastAt: number;
}

/**
 * Returns the value of `key` in a cache of the `max` most recently used values; creates a missing value. A `Map` iterates in the order of
 * insertion, so its first key is the oldest.
 */
function getOrCreateValue<Value>(map: Map<string, Value>, key: string, max: number, createValue: () => Value): Value {
  const value = map.get(key) ?? createValue();
  map.delete(key);
  if (map.size >= max) map.delete(map.keys().next().value!);
  map.set(key, value);
  return value;
}

function computeP95DurationMs({ durationsMs, count }: RecordedQuery): number {
  const sortedTimes = durationsMs.slice(0, Math.min(count, MAX_RECORDED_DURATIONS)).sort();
  return Math.round(sortedTimes[Math.floor(sortedTimes.length * 0.95)]! * 100) / 100;
}

const createSourceKey = ({ appId, id }: Pick<StoredDataSource, "appId" | "id">) => `${appId} ${id}`;

export class RecentQueries {
  private readonly queriesBySource = new Map<string, Map<string, RecordedQuery>>();

  constructor(private readonly now: () => number = Date.now) {}

  /** Records a query that finished or exceeded its time limit. @param ms duration of the query in milliseconds */
  record(source: StoredDataSource, query: unknown, ms: number): void {
    const knownColumns = new Set(source.columns);
    const shape = createQueryShape(query, (column) => knownColumns.has(column));
    if (shape === null) return;
    const queryShapes = getOrCreateValue(
      this.queriesBySource,
      createSourceKey(source),
      MAX_RECORDED_SOURCES,
      () => new Map<string, RecordedQuery>(),
    );
    const name = JSON.stringify([shape.where, shape.order, shape.aggregate]);
    const createValue = () => ({ shape, count: 0, durationsMs: new Float32Array(MAX_RECORDED_DURATIONS), lastAt: 0 });
    const stored = getOrCreateValue(queryShapes, name, MAX_SHAPES_PER_SOURCE, createValue);
    stored.durationsMs[stored.count % MAX_RECORDED_DURATIONS] = ms;
    stored.count += 1;
    stored.lastAt = this.now();
  }

  /**
   * Lists the recorded query shapes of a data source, the most recent first. Leaves out queries without a column in
   * `where` and `order`, because no index would help them.
   */
  list(source: StoredDataSource): RecentQuery[] {
    const stored = [...(this.queriesBySource.get(createSourceKey(source))?.values() ?? [])].reverse();
    const mayIndex = (column: string) => !source.hashedColumns.includes(column);
    return stored.flatMap((recordedQuery) => {
      const { shape, count, lastAt } = recordedQuery;
      const { where, order, aggregate } = shape;
      if (where.length + order.length === 0) return [];
      const index = source.indexes.find((options) => canIndexSpeedUpQueries(listIndexColumnPaths(options), shape));
      return {
        ...{
          where,
          order,
          aggregate,
          count,
          p95Ms: computeP95DurationMs(recordedQuery),
          lastAt: new Date(lastAt).toISOString(),
        },
        index: index === undefined ? null : listIndexColumnPaths(index),
        suggestion: index === undefined ? suggestIndexColumns(shape, mayIndex) : null,
      };
    });
  }
}
