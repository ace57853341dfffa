/** Columns of the table of runs: headings, widths and cells. Add a new column to this file. */
import type { ReactNode } from "react";
import { formatColumnTime, formatExactTime } from "../shared/format.js";
import type { RunRow } from "../shared/model.js";
import { createHref, type StudioRoute } from "../shell/studio-route.js";
import { CancelButton } from "./run-line.js";
import { describeRun, formatRunDuration, RunStateLabel, TRIGGER_WORDS, VersionChip } from "./run-words.js";

interface CellContext {
  appId: number;
  filters: StudioRoute["query"];
  cancelRun: (runId: number) => Promise<void>;
}

export interface RunColumn {
  key: string;
  heading: string;
  /** Width of the column as a value of the CSS property `grid-template-columns`. */
  width: string;
  className: string;
  /** True if the person cannot hide the column. */
  isFixed?: true;
  renderCell(run: RunRow, context: CellContext): ReactNode;
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
      href={createHref({ appId, view: "runs", item: String(run.id), query: filters })}
      aria-label={`${name}, run ${run.id}`}
    >
      {name}
    </a>
  );
}

export const RUN_COLUMNS: readonly RunColumn[] = [
  { key: "run", heading: "Run", width: "56px", className: "run-number", renderCell: ({ id }) => `#${id}` },
  {
    key: "state",
    heading: "State",
    width: "92px",
    className: "",
    renderCell: ({ state }) => <RunStateLabel state={state} />,
  },
  {
    key: "started",
    heading: "Started",
    width: "minmax(76px, 100px)",
    className: "started",
    renderCell: (run) => <StartedCell {...run} />,
  },
  {
    key: "action",
    heading: "Action",
    width: "minmax(110px, 2fr)",
    className: "run-name",
    isFixed: true,
    renderCell: (run, { appId, filters }) => <ActionLink {...{ run, appId, filters }} />,
  },
  {
    key: "version",
    heading: "Version",
    width: "56px",
    className: "",
    renderCell: ({ copy }) => <VersionChip copy={copy} />,
  },
  {
    key: "trigger",
    heading: "Trigger",
    width: "minmax(72px, 92px)",
    className: "mode",
    renderCell: ({ trigger }) => TRIGGER_WORDS[trigger],
  },
  {
    key: "queued",
    heading: "Queued",
    width: "minmax(76px, 120px)",
    className: "started",
    renderCell: (run) => <QueuedCell {...run} />,
  },
  { key: "duration", heading: "Duration", width: "68px", className: "took", renderCell: formatRunDuration },
  {
    key: "end",
    heading: "Result or error",
    // This column is much wider than the column of the action's name, because results and error messages are longer
    // than names.
    width: "minmax(132px, 4.2fr)",
    className: "end",
    isFixed: true,
    renderCell: (run, { cancelRun }) => (
      <>
        <span className="gist">{describeRun(run)}</span>
        <CancelButton {...{ run, cancelRun }} />
      </>
    ),
  },
];

/** Keys of the columns that are hidden until the person shows them. */
export const COLUMNS_HIDDEN_BY_DEFAULT: readonly string[] = ["queued"];
/**
 * Keys of the columns that are hidden by default in a window as wide as a tablet. The column of the result or the error message needs their
 * space.
 */
export const COLUMNS_HIDDEN_IN_MEDIUM_WINDOWS: readonly string[] = [...COLUMNS_HIDDEN_BY_DEFAULT, "run", "trigger"];

export const createGridTemplate = (columns: readonly RunColumn[]): string =>
  columns.map(({ width }) => width).join(" ");
