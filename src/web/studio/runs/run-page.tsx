/** Page of one run: its times, payload, result, console and requests, the runs that it caused, and a form that replays it. */
import type { ReactNode } from "react";
import { AllowOriginButton } from "../actions/allow-origin.js";
import type { ApiClient } from "../shared/api.js";
import { formatBytes, formatDuration, formatExactTime } from "../shared/format.js";
import type { RunDetails } from "../shared/model.js";
import type { PageProps } from "../shell/page-props.js";
import { ForOperators } from "../shell/role.js";
import { createHref, type StudioRoute } from "../shell/studio-route.js";
import { ConsoleLines } from "./console-lines.js";
import { ResultView } from "./result-view.js";
import { ReplayForm } from "./run-again.js";
import { RunLine } from "./run-line.js";
import { isUnfinished, RunStateLabel, TRIGGER_WORDS, VersionChip, WAIT_REASON_WORDS } from "./run-words.js";
import { ErrorStack } from "./stack.js";
import { useRunDetails } from "./use-run-details.js";

function RunSection({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="run-part" aria-label={title}>
      <h3>{title}</h3>
      {children}
    </section>
  );
}

interface RunStep {
  stepName: string;
  at: string;
  /** Time since the previous step of the run as text, such as "+ 20 ms"; "" for the first step. */
  timeSincePrevious: string;
}

function listSteps(run: RunDetails): RunStep[] {
  const { tick, queuedAt, startedAt, finishedAt, state } = run;
  const possibleSteps: [string, string | null][] = [
    ["due", tick],
    ["accepted", queuedAt],
    ["started", startedAt],
    [state, finishedAt],
  ];
  const reachedSteps = possibleSteps.filter((entry): entry is [string, string] => entry[1] !== null);
  return reachedSteps.map(([stepName, at], index) => {
    const previousTime = reachedSteps[index - 1]?.[1];
    const elapsedMs = previousTime === undefined ? 0 : Math.max(0, Date.parse(at) - Date.parse(previousTime));
    return { stepName, at, timeSincePrevious: previousTime === undefined ? "" : `+ ${formatDuration(elapsedMs)}` };
  });
}

function RunTimeline({ run }: { run: RunDetails }) {
  return (
    <ol className="timeline">
      {listSteps(run).map(({ stepName, at, timeSincePrevious }) => (
        <li key={stepName} className="moment">
          <b>{stepName}</b> <time dateTime={at}>{formatExactTime(at)}</time>{" "}
          <span className="hint">{timeSincePrevious}</span>
        </li>
      ))}
    </ol>
  );
}

const SANDBOX_WORDS: Record<string, string> = {
  isolate: "an isolate",
  "network-isolate": "an isolate with a network",
  document: "a document",
};

function RunProperties({ run, appId }: { run: RunDetails; appId: number }) {
  const renderLink = (route: Partial<StudioRoute> & Pick<StudioRoute, "view">, label: string) => (
    <a href={createHref({ appId, ...route })}>{label}</a>
  );
  const renderRunLink = (id: number) => renderLink({ view: "runs", item: String(id) }, `run ${id}`);
  const {
    person,
    personId,
    causeRunId,
    chainId,
    replayOf,
    versionId,
    eventId,
    hosts,
    sandbox,
    reason,
    tickCount,
    waitsFor,
  } = run;
  const personName = person
    ? `${person.firstName} ${person.lastName}`
    : personId === null
      ? null
      : `person ${personId}`;
  const facts: [string, ReactNode][] = [
    ["Started by", TRIGGER_WORDS[run.trigger]],
    ["Requested by", personName && renderLink({ view: "runs", query: { person: String(personId) } }, personName)],
    [
      "Version",
      versionId === null
        ? null
        : renderLink({ view: "runs", query: { version: String(versionId) } }, `version ${versionId}`),
    ],
    ["Replay of", replayOf === null ? null : renderRunLink(replayOf)],
    ["Caused by", causeRunId === null ? null : renderRunLink(causeRunId)],
    ["First of the chain", chainId === null || chainId === causeRunId ? null : renderRunLink(chainId)],
    ["Log event", eventId],
    ["Skipped because", reason && (tickCount > 1 ? `${reason}, ${tickCount} ticks` : reason)],
    ["Waits", waitsFor && WAIT_REASON_WORDS[waitsFor]],
    ["Evaluated in", sandbox && (SANDBOX_WORDS[sandbox] ?? sandbox)],
    ["Contacted", hosts.length === 0 ? null : hosts.join(", ")],
  ];
  return (
    <dl className="run-facts">
      {facts
        .filter(([, value]) => value !== null)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

interface RunHeadProps {
  run: RunDetails;
  appId: number;
  cancelRun: () => Promise<void>;
}

function RunHead({ run, appId, cancelRun }: RunHeadProps) {
  const { actionId, actionName, masterId } = run;
  const name = actionName ?? `action ${actionId} (deleted)`;
  return (
    <div className="row run-head">
      <h2>
        {masterId === null ? name : <a href={createHref({ appId, view: "actions", item: String(masterId) })}>{name}</a>}
      </h2>
      <span role="status">
        <RunStateLabel state={run.state} />
      </span>
      <VersionChip copy={run.copy} />
      <span className="grow" />
      <a href={createHref({ appId, view: "runs", query: { action: String(actionId) } })}>All runs of this action</a>
      {isUnfinished(run) && (
        <ForOperators>
          <button type="button" onClick={() => void cancelRun()}>
            Cancel the run
          </button>
        </ForOperators>
      )}
    </div>
  );
}

function RunRequests({ requests }: Pick<RunDetails, "requests">) {
  if (requests.length === 0) return null;
  return (
    <RunSection title="Requests to other services">
      <table>
        <thead>
          <tr>
            {["Host", "Method", "Status", "Duration", "Sent", "Received"].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {requests.map(({ host, method, status, code, durationMs, sentBytes, receivedBytes }, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the requests of a finished run never change their order
            <tr key={index}>
              <td>{host}</td>
              <td>{method}</td>
              <td>{code ?? status}</td>
              <td>{durationMs} ms</td>
              <td>{formatBytes(sentBytes)}</td>
              <td>{formatBytes(receivedBytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </RunSection>
  );
}

function RunOutcome({ run, appId, api }: { run: RunDetails; appId: number; api: ApiClient }) {
  const { log, masterId, actionName } = run;
  if (!log) return null;
  if (log.error) {
    const action = masterId === null ? null : { id: masterId, name: actionName! };
    return (
      <RunSection title="Error">
        <ErrorStack error={log.error} appId={appId} action={action} />
        {masterId !== null && <AllowOriginButton {...{ api, appId, actionId: masterId, message: log.error.message }} />}
      </RunSection>
    );
  }
  const result = log.result as { data?: unknown } | null;
  return (
    <RunSection title="Result">
      {result ? (
        <ResultView value={result.data} name={`run-${run.id}.json`} />
      ) : (
        <p className="hint">The service stores no result of a scheduled run.</p>
      )}
    </RunSection>
  );
}

export function RunPage({ api, appId, runId, route, go, confirm }: PageProps & { runId: number }) {
  const { run, fault, lines, cancelAndReload } = useRunDetails(api, appId, runId);
  if (!run) {
    return (
      <div className="welcome">
        {fault ? (
          <>
            <h2>Run {runId} cannot be shown</h2>
            <p role="alert">{fault}</p>
            <a href={createHref({ appId, view: "runs" })}>All runs</a>
          </>
        ) : (
          <p>Loading…</p>
        )}
      </div>
    );
  }
  const { log, caused } = run;
  return (
    <div className="run-page">
      <RunHead {...{ run, appId, cancelRun: cancelAndReload }} />
      {fault && (
        <p className="fault" role="alert">
          {fault}
        </p>
      )}
      <div className="run-columns">
        <div>
          <RunOutcome run={run} appId={appId} api={api} />
          <RunRequests requests={run.requests} />
          <RunSection title="Console">
            {lines.length === 0 ? (
              <p className="hint">{isUnfinished(run) ? "Nothing yet." : "The run wrote nothing to the console."}</p>
            ) : (
              <ConsoleLines lines={lines} />
            )}
          </RunSection>
          {caused.length > 0 && (
            <RunSection title="Runs that this run caused">
              <ul className="caused">
                {caused.map((causedRun) => (
                  <li key={causedRun.id} className={`run-row ${causedRun.state}`}>
                    <RunLine run={causedRun} appId={appId} />
                  </li>
                ))}
              </ul>
            </RunSection>
          )}
        </div>
        <div>
          <RunSection title="Timeline">
            <RunTimeline run={run} />
            <RunProperties run={run} appId={appId} />
          </RunSection>
          {log && (
            <RunSection title="Payload">
              <ResultView value={log.payload} name={`payload-of-run-${run.id}.json`} />
            </RunSection>
          )}
          <ForOperators>
            <ReplayForm {...{ api, appId, run, route, go, confirm }} />
          </ForOperators>
        </div>
      </div>
    </div>
  );
}
