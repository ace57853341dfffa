/** Panel that shows how other programs call the action: its URLs with their secrets, examples to copy, and the latest requests. */
import { keepPreviousData, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { resolveServiceUrl } from "../../service-address.js";
import { ReadHttpEndpoints, RotateTriggerSecret } from "../documents.js";
import { useExecutionLog } from "../runs/use-log.js";
import { type ApiClient, asApiError } from "../shared/api.js";
import type { ConfirmFunction } from "../shared/confirm.js";
import { CopyButton } from "../shared/copy-button.js";
import { formatAge, formatExactTime } from "../shared/format.js";
import type { Action, HttpEndpointsResult, LogEntry } from "../shared/model.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import { createHref } from "../shell/studio-route.js";
import { type CallExample, createEndpointExample, createRunExamples } from "./call-texts.js";
import type { ActionsState } from "./use-actions.js";

interface CallPanelProps {
  api: ApiClient;
  appId: number;
  confirm: ConfirmFunction;
  savedAction: Action;
  actions: ActionsState;
  /** IDs of the draft and of the live version. */
  versionIds: number[];
  payload: string;
  /** Fills the Run panel with this payload. */
  fillPayload: (text: string) => void;
}

type ActionTrigger = Action["triggers"][number];

const isHttpTrigger = ({ trigger }: ActionTrigger): boolean => trigger === "http";

/**
 * Reads the action's URLs, and the requests to these URLs that the service rejected. Reads them again after each save
 * of the action and after each new run.
 */
function useActionCalls(appId: number, { id, updatedAt }: Action, newestEntryId: number | undefined) {
  const client = useQueryClient();
  const { value, fault } = useResource({
    ...createQueryOptions(ReadHttpEndpoints, { appId, id }, `${updatedAt} ${newestEntryId}`),
    placeholderData: keepPreviousData,
    // The URLs contain secrets, so the cache drops them as soon as no panel shows them.
    gcTime: 0,
  });
  /** Reads the URLs and rejected requests again. Cancels a pending read, because its response may contain the old secret. */
  const reload = async () => {
    const filter = { queryKey: [ReadHttpEndpoints, { appId, id }] };
    await client.cancelQueries(filter);
    await client.invalidateQueries(filter);
  };
  return { value, fault, reload };
}

function CallExampleView({ title, curl, javascript }: CallExample) {
  return (
    <details className="call-example">
      <summary className="mono">{title}</summary>
      {[
        ["curl", curl],
        ["JavaScript", javascript],
      ].map(([language, text]) => (
        <div key={language}>
          <p className="row">
            <span className="grow">{language}</span>
            <CopyButton className="quiet small" getText={() => text!} />
          </p>
          <pre className="result">{text}</pre>
        </div>
      ))}
    </details>
  );
}

function EndpointUrl({ label, url }: { label: string; url: string }) {
  return (
    <p className="row call-address">
      <span className="hint">{label}</span>
      <code className="grow">{url}</code>
      <CopyButton className="quiet small" getText={() => url} />
    </p>
  );
}

interface EndpointsProps extends Pick<CallPanelProps, "api" | "appId" | "confirm" | "savedAction" | "payload"> {
  endpoints: NonNullable<HttpEndpointsResult["action"]>["endpoints"];
  reload: () => Promise<void>;
}

function EndpointList({ api, appId, confirm, savedAction, payload, endpoints, reload }: EndpointsProps) {
  const [fault, setFault] = useState<string | null>(null);
  const triggers = savedAction.triggers.filter(isHttpTrigger);
  const hasSecret = triggers.some(({ where }) => where?.auth?.type === "secret");
  const rotateSecret = async () => {
    const text =
      "The addresses of the draft and of the live version change immediately. Callers need the new addresses.";
    if (
      !(await confirm({ title: "Replace the secret?", explanation: text, confirmLabel: "Replace", isDangerous: true }))
    )
      return;
    try {
      await api.request(RotateTriggerSecret, { appId, id: savedAction.id });
      setFault(null);
      await reload();
    } catch (error) {
      setFault(asApiError(error).message);
    }
  };
  if (!endpoints || endpoints.length === 0) {
    return <p className="hint">To give this action an address of its own, add the trigger “On an HTTP request”.</p>;
  }
  return (
    <>
      {endpoints.map((endpoint, index) => (
        <section key={`${endpoint.method} ${endpoint.draftUrl}`} aria-label={`Address ${index + 1}`}>
          <EndpointUrl label={`${endpoint.method ?? "any method"}, live`} url={endpoint.url} />
          <EndpointUrl label="draft, with an editor's credential" url={endpoint.draftUrl} />
          <CallExampleView
            {...createEndpointExample(endpoint, triggers[index]?.where?.auth?.type ?? "none", payload)}
          />
        </section>
      ))}
      {hasSecret && (
        <p className="row">
          <button type="button" onClick={() => void rotateSecret()}>
            Replace the secret
          </button>
        </p>
      )}
      <p className="fault" role="alert">
        {fault}
      </p>
    </>
  );
}

function RejectedRequests({ refused }: { refused: HttpEndpointsResult["refused"] }) {
  if (refused.length === 0) return null;
  return (
    <ul className="rows" aria-label="Refused requests">
      {refused.map(({ status, reason, count, lastAt, lastAddress }) => (
        <li key={`${status} ${reason}`} className="fault">
          {count} refused: {reason}. The last one <time title={formatExactTime(lastAt)}>{formatAge(lastAt)}</time>
          {lastAddress && ` from ${lastAddress}`} <code>{status}</code>
        </li>
      ))}
    </ul>
  );
}

const CALL_MAX_CHARACTERS = 200;

/** Describes a logged run by its HTTP request or its payload. Returns null for a run that a schedule or a log event started. */
function describeCall({ mode, payload }: LogEntry): string | null {
  if (mode !== "on-demand") return null;
  const { trigger, request } = (payload ?? {}) as { trigger?: string; request?: { method: string; path: string } };
  if (trigger === "log") return null;
  if (trigger === "http" && request) return `${request.method} ${request.path}`;
  return JSON.stringify(payload ?? {}).slice(0, CALL_MAX_CHARACTERS);
}

function RecentRequests({
  entries,
  appId,
  savedAction,
  fillPayload,
}: Pick<CallPanelProps, "appId" | "savedAction" | "fillPayload"> & { entries: LogEntry[] }) {
  const requests = entries.flatMap((entry) => {
    const call = describeCall(entry);
    return call === null ? [] : [{ entry, call }];
  });
  if (requests.length === 0) return <p className="hint">No requests yet. They appear here as their runs end.</p>;
  return (
    <ul className="rows" aria-label="Last requests">
      {requests.slice(0, 20).map(({ entry, call }) => (
        <li key={entry.id} className="row">
          <span className={entry.type === "app.task.completed" ? "state completed" : "state failed"}>
            {entry.type === "app.task.completed" ? "✓" : "✕"}
          </span>
          <code className="grow">{call}</code>
          <time title={formatExactTime(entry.createdAt)}>{formatAge(entry.createdAt)}</time>
          <button
            type="button"
            className="quiet small"
            onClick={() => fillPayload(JSON.stringify(entry.payload, null, 2))}
          >
            Use as test payload
          </button>
        </li>
      ))}
      <li>
        <a href={createHref({ appId, view: "runs", query: { action: String(savedAction.id) } })}>
          All runs of this action
        </a>
      </li>
    </ul>
  );
}

export function CallPanel(props: CallPanelProps) {
  const { api, appId, savedAction, actions, versionIds, payload } = props;
  const { entries, fault: logFault } = useExecutionLog({
    api,
    appId,
    logSubscription: actions.logSubscription,
    versionIds,
    isFailuresOnly: false,
  });
  const { value: calls, fault, reload } = useActionCalls(appId, savedAction, entries?.[0]?.id);
  const isOnDemand = savedAction.triggers.some(({ trigger }) => trigger === "manual");
  const hasHttpTrigger = savedAction.triggers.some(isHttpTrigger);
  return (
    <section className="call-panel" aria-label="Call this action">
      {fault && (
        <p className="fault" role="alert">
          {fault}
        </p>
      )}
      <h3>Addresses</h3>
      <EndpointList {...props} endpoints={calls?.action?.endpoints ?? null} reload={reload} />
      <h3>With a token</h3>
      {isOnDemand ? (
        createRunExamples(resolveServiceUrl("").href.replace(/\/$/, ""), appId, savedAction.name, payload).map(
          (example) => <CallExampleView key={example.title} {...example} />,
        )
      ) : (
        <p className="hint">Running with a token needs the trigger “On demand”.</p>
      )}
      {(hasHttpTrigger || isOnDemand) && (
        <>
          <h3>Last requests</h3>
          <RejectedRequests refused={calls?.refused ?? []} />
          {logFault && (
            <p className="fault" role="alert">
              {logFault.message}
            </p>
          )}
          {entries && <RecentRequests {...props} entries={entries} />}
        </>
      )}
    </section>
  );
}
