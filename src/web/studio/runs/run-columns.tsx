/** Columns of the table of runs: headers, widths and cells. Add a new column here. */
import type { ReactNode } from "react";
import { formatColumnTime, formatExactTime } from "../shared/format.js";
import type { RunRow } from "../shared/model.js";
import { hrefOf, type Place } from "../shell/place.js";
import { CancelButton } from "./run-line.js";
import { RunState, runDuration, runSummary, TRIGGER_WORDS, VersionChip } from "./run-words.js";

interface CellContext {
  appId: number;
  filters: Place["query"];
  cancel: (runId: number) => Promise<void>;
}

export interface RunColumn {
  key: string;
  head: string;
  /** Width of the column as a CSS grid track. */
  width: string;
  className: string;
  /** True if the column cannot be hidden. */
  isFixed?: true;
  cell(run: RunRow, context: CellContext): ReactNode;
}

function StartedCell({ startedAt }: RunRow) {
  if (startedAt === null) return "not started";
  return (
    <time dateTime={startedAt} title={formatExactTime(startedAt)}>
      {formatColumnTime(startedAt)}
    </time>
  );
}

function QueuedCell({ queuedAt }: RunRow) {
  return (
    <time dateTime={queuedAt} title={formatExactTime(queuedAt)}>
      {formatColumnTime(queuedAt)}
    </time>
  );
}

function ActionLink({ run, appId, filters }: { run: RunRow } & Pick<CellContext, "appId" | "filters">) {
  const name = run.actionName ?? `action ${run.actionId}`;
  return (
    <a
      className="run-link"
      href={hrefOf({ appId, view: "runs", item: String(run.id), query: filters })}
      aria-label={`${name}, run ${run.id}`}
    >
      {name}
    </a>
  );
}

export const RUN_COLUMNS: readonly RunColumn[] = [
  { key: "run", head: "Run", width: "56px", className: "run-number", cell: ({ id }) => `#${id}` },
  { key: "state", head: "State", width: "92px", className: "", cell: ({ state }) => <RunState state={state} /> },
  {
    key: "started",
    head: "Started",
    width: "minmax(76px, 120px)",
    className: "started",
    cell: (run) => <StartedCell {...run} />,
  },
  {
    key: "action",
    head: "Action",
    width: "minmax(90px, 2fr)",
    className: "run-name",
    isFixed: true,
    cell: (run, { appId, filters }) => <ActionLink {...{ run, appId, filters }} />,
  },
  { key: "version", head: "Version", width: "56px", className: "", cell: ({ copy }) => <VersionChip copy={copy} /> },
  {
    key: "trigger",
    head: "Trigger",
    width: "minmax(72px, 92px)",
    className: "mode",
    cell: ({ trigger }) => TRIGGER_WORDS[trigger],
  },
  {
    key: "queued",
    head: "Queued",
    width: "minmax(76px, 120px)",
    className: "started",
    cell: (run) => <QueuedCell {...run} />,
  },
  { key: "duration", head: "Duration", width: "68px", className: "took", cell: runDuration },
  {
    key: "end",
    head: "Result or error",
    // Two and a half times as wide as the action, because results and errors are longer than names.
    width: "minmax(132px, 5fr)",
    className: "end",
    isFixed: true,
    cell: (run, { cancel }) => (
      <>
        <span className="gist">{runSummary(run)}</span>
        <CancelButton {...{ run, cancel }} />
      </>
    ),
  },
];

/** IDs of columns that are hidden until the person shows them. */
export const HIDDEN_BY_DEFAULT: readonly string[] = ["queued"];
/** Columns that are also hidden in a window of a tablet's width, so that the result or the error has space. */
export const HIDDEN_IN_MEDIUM_WINDOWS: readonly string[] = [...HIDDEN_BY_DEFAULT, "run", "trigger"];

export const gridTemplate = (columns: readonly RunColumn[]): string => columns.map(({ width }) => width).join(" ");
