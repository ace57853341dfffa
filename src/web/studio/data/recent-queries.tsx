/** Recent queries of a data source by kind, with the index that serves each or would serve it. Shows columns and operators, never values. */
import { useCallback, useEffect, useState } from "react";
import { ListRecentQueries, type ListRecentQueriesQuery } from "../documents.js";
import { type Api, asApiError } from "../shared/api.js";
import { ago, exact } from "../shared/format.js";
import type { DataSource } from "../shared/model.js";

type RecentQuery = ListRecentQueriesQuery["queries"][number];

interface RecentQueriesProps {
  api: Api;
  appId: number;
  source: DataSource;
  /** Saves an index of those columns beside the others. */
  onAdd: (columns: string[]) => void;
}

const nameOf = ({ where, order, aggregate }: RecentQuery): string =>
  [where.join(", "), order.length > 0 && `order ${order.join(", ")}`, aggregate && "aggregate"]
    .filter(Boolean)
    .join(" · ");

function Row({ query, onAdd }: { query: RecentQuery } & Pick<RecentQueriesProps, "onAdd">) {
  const { count, p95Ms, lastAt, index, suggestion } = query;
  return (
    <tr>
      <td className="mono">{nameOf(query)}</td>
      <td>{count}</td>
      <td title={`last ${ago(lastAt)}, ${exact(lastAt)}`}>{p95Ms.toFixed(1)} ms</td>
      <td>
        {index && <span className="chip">{index.join(", ")}</span>}
        {suggestion && (
          <button type="button" onClick={() => onAdd(suggestion)}>
            Add an index on {suggestion.join(", ")}
          </button>
        )}
        {!index && !suggestion && <span className="hint">no index helps</span>}
      </td>
    </tr>
  );
}

export function RecentQueries({ api, appId, source, onAdd }: RecentQueriesProps) {
  const [queries, setQueries] = useState<readonly RecentQuery[] | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const { id, updatedAt } = source;
  const load = useCallback(async () => {
    try {
      setQueries((await api.ask(ListRecentQueries, { appId, id })).queries);
      setFault(null);
    } catch (error) {
      setFault(asApiError(error).message);
    }
  }, [api, appId, id]);
  // Another index serves other queries.
  // biome-ignore lint/correctness/useExhaustiveDependencies: read again for each state of the data source
  useEffect(() => void load(), [load, updatedAt]);
  return (
    <div className="recent-queries">
      <p className="row">
        <b className="grow">Recent queries</b>
        <button type="button" onClick={() => void load()}>
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
              <Row key={nameOf(query)} query={query} onAdd={onAdd} />
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}
