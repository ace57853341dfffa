/** Page of the app's runs. The service searches, filters and counts the runs. run-page.tsx contains the page of one run. */
import { useCallback, useMemo, useState } from "react";
import type { PageProps } from "../shell/page-props.js";
import { createHref, mergeQuery, parseId } from "../shell/studio-route.js";
import { QueuedRunsLine } from "./backlog-line.js";
import { BulkActions } from "./bulk-actions.js";
import { ChooseColumns } from "./choose-columns.js";
import { LazyRunsChart } from "./lazy-chart.js";
import { RunPage } from "./run-page.js";
import { RunsFilters } from "./runs-filters.js";
import { RunsList } from "./runs-list.js";
import { parseTimeRange, type RunsUrlQuery, toRunsFilter } from "./runs-query.js";
import { useRunColumns } from "./use-columns.js";
import { type RunListState, useRuns } from "./use-runs.js";

function RunsCount({ runList }: { runList: RunListState }) {
  const { runs, total, hasMore, isPaused, isLoading, loadMore, fault } = runList;
  if (!runs || !total) return fault ? null : <p className="hint">Loading…</p>;
  const orMoreText = total.isExact ? "" : " or more";
  return (
    <p className="hint row" role="status">
      {total.count === 0 && !hasMore
        ? ""
        : `${Math.max(total.count, runs.length).toLocaleString("en")}${orMoreText} found`}
      {(isPaused || (runs.length === 0 && hasMore)) && !isLoading && (
        <button type="button" className="link" onClick={loadMore}>
          Look through older runs
        </button>
      )}
    </p>
  );
}

function EmptyRunsText({ appId, isFiltered }: { appId: number; isFiltered: boolean }) {
  if (isFiltered) return <p className="hint empty">No run matches these filters.</p>;
  return (
    <div className="empty-state">
      <p>
        <b>No runs yet</b>
      </p>
      <p className="hint">Runs of all actions appear here, with their results, errors and consoles.</p>
      <a className="button" href={createHref({ appId, view: "actions" })}>
        Open the actions
      </a>
    </div>
  );
}

function RunsHistory({ api, appId, route, go, confirm, actions }: PageProps) {
  const query = route.query as RunsUrlQuery;
  // Reads the clock only once. Otherwise the start of the time range would change with each render, and cause a new request.
  const [now] = useState(() => Date.now());
  const filter = useMemo(() => toRunsFilter(query, now), [query, now]);
  const runList = useRuns({ api, appId, filter, logSubscription: actions.logSubscription });
  const { runs, hasMore, isLoading, fault } = runList;
  const changeQuery = useCallback((part: RunsUrlQuery) => go({ query: mergeQuery(query, part) }), [go, query]);
  const setSearch = useCallback(
    (search: string) =>
      go({ query: mergeQuery(query, { search }) }, { replacesHistoryEntry: query.search !== undefined }),
    [go, query],
  );
  const columns = useRunColumns();
  const isFiltered = Object.keys(query).length > 0;
  return (
    <div className="runs-page">
      <h2 className="unseen">Runs</h2>
      <RunsFilters
        {...{ query, changeQuery, setSearch }}
        actionList={actions.actionList}
        clearFilters={() => go({ query: {} })}
      />
      <QueuedRunsLine {...{ api, appId, confirm }} />
      <RunsList runList={runList} appId={appId} filters={route.query} columns={columns.shownColumns}>
        <LazyRunsChart
          {...{ api, appId, filter }}
          timeRange={parseTimeRange(query)}
          logSubscription={actions.logSubscription}
          listFault={fault?.message ?? null}
        />
        <div className="row runs-count">
          <span className={actions.logSubscription.isConnected ? "live-dot on" : "live-dot"}>
            {actions.logSubscription.isConnected ? "live" : "reconnecting…"}
          </span>
          <RunsCount runList={runList} />
          {fault && (
            <span className="fault" role="alert">
              {fault.message}
            </span>
          )}
          <span className="grow" />
          <BulkActions {...{ api, appId, confirm }} state={query.state} runs={runs ?? []} />
          <ChooseColumns {...columns} />
        </div>
        {runs?.length === 0 && !hasMore && !isLoading && <EmptyRunsText {...{ appId, isFiltered }} />}
      </RunsList>
    </div>
  );
}

export function RunsPage(props: PageProps) {
  const { appId, route } = props;
  const runId = parseId(route.item);
  return runId === null ? (
    <RunsHistory key={appId} {...props} />
  ) : (
    <RunPage key={`${appId}/${runId}`} {...props} runId={runId} />
  );
}
