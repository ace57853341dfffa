/**
 * List of recent queries of a data source, with the index that each query uses or could use. Shows columns and operators, but no values.
 */
import { keepPreviousData } from "@tanstack/react-query";
import { ListRecentQueries, type ListRecentQueriesQuery } from "../documents.js";
import { formatAge, formatExactTime } from "../shared/format.js";
import type { DataSource } from "../shared/model.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";

type RecentQuery = ListRecentQueriesQuery["queries"][number];

interface RecentQueriesProps {
  appId: number;
  source: DataSource;
  /** Adds an index of these columns to the stored indexes of the data source. */
  addIndex: (columns: string[]) => void;
}

const describeQuery = ({ where, order, aggregate }: RecentQuery): string =>
  [where.join(", "), order.length > 0 && `order ${order.join(", ")}`, aggregate && "aggregate"]
    .filter(Boolean)
    .join(" · ");

function RecentQueryRow({ query, addIndex }: { query: RecentQuery } & Pick<RecentQueriesProps, "addIndex">) {
  const { count, p95Ms, lastAt, index, suggestion } = query;
  return (
    <tr>
      <td className="mono">{describeQuery(query)}</td>
      <td>{count}</td>
      <td title={`last ${formatAge(lastAt)}, ${formatExactTime(lastAt)}`}>{p95Ms.toFixed(1)} ms</td>
      <td>
        {index && <span className="chip">{index.join(", ")}</span>}
        {suggestion && (
          <button type="button" onClick={() => addIndex(suggestion)}>
            Add an index on {suggestion.join(", ")}
          </button>
        )}
        {!index && !suggestion && <span className="hint">no index helps</span>}
      </td>
    </tr>
  );
}

export function RecentQueries({ appId, source: { id, updatedAt }, addIndex }: RecentQueriesProps) {
  // Reads the queries again when the data source changes, because they may use a new index.
  const { value, fault, reload } = useResource({
    ...createQueryOptions(ListRecentQueries, { appId, id }, updatedAt),
    placeholderData: keepPreviousData,
  });
  const queries = value?.queries;
  return (
    <div className="recent-queries">
      <p className="row">
        <b className="grow">Recent queries</b>
        <button type="button" onClick={() => void reload()}>
          Refresh
        </button>
      </p>
      <p className="fault" role="alert">
        {fault}
      </p>
      {queries?.length === 0 && <p className="hint">No query has named a column since this process started.</p>}
      {queries && queries.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Query</th>
              <th scope="col">Times</th>
              <th scope="col">p95</th>
              <th scope="col">Index</th>
            </tr>
          </thead>
          <tbody>
            {queries.map((query) => (
              <RecentQueryRow key={describeQuery(query)} query={query} addIndex={addIndex} />
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}
