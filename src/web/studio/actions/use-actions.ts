/**
 * Hooks that load the app's list of actions, without their code. They also subscribe to the app's execution log,
 * because the list shows the last run of each action.
 */
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import {
  FollowActions,
  FollowExecutionLog,
  ListActions,
  type ListActionsQuery,
  ListFailedLiveRuns,
  type ListFailedLiveRunsQuery,
} from "../documents.js";
import { isFailedLogEntry } from "../runs/log-entry.js";
import type { ApiClient } from "../shared/api.js";
import type { ActionChange, ActionList, ActionSummary, LiveVersion, LogEntry } from "../shared/model.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";

/** Subscription to the app's execution log, shared by all parts of the page. */
export interface LogSubscription {
  isConnected: boolean;
  /** Calls `listener` with each new log entry. Returns a function that removes the listener. */
  onEntry(listener: (entry: LogEntry) => void): () => void;
}

/** Subscription to the changes that this or another person makes to actions of the app. */
export interface ActionChangeSubscription {
  /** Calls `listener` at each change of an action. Returns a function that removes the listener. */
  onChange(listener: (change: ActionChange) => void): () => void;
}

/** Action to which a run belongs. `id` is the ID of its draft; `isLive` is true if the live version ran. */
export interface LoggedAction {
  id: number;
  name: string;
  isLive: boolean;
}

export interface ActionsState {
  /** Actions of the app; null until the first read has ended. */
  actionList: ActionList | null;
  fault: string | null;
  reloadActions(): Promise<void>;
  /**
   * Returns the actions that the service finds for the typed words. Returns null if the page has loaded all actions and can search them
   * itself.
   * @throws ApiError
   */
  searchActions(search: string): Promise<ActionSummary[]> | null;
  findLiveVersion(masterId: number): LiveVersion | undefined;
  /** True if the last run of the action's live version failed. */
  hasFailed(masterId: number): boolean;
  /** Returns the action to which a log entry belongs. @param taskId ID of a draft or of a live version, as the log entry contains it */
  findLoggedAction(taskId: number): LoggedAction | null;
  logSubscription: LogSubscription;
  changes: ActionChangeSubscription;
}

/** Delay in milliseconds from the last change of an action to the next read of the list. */
const RELOAD_DELAY_MS = 300;

function useActionChanges(api: ApiClient, appId: number | null, reload: () => Promise<void>): ActionChangeSubscription {
  const listeners = useRef(new Set<(change: ActionChange) => void>());
  useEffect(() => {
    if (appId === null) return;
    let reloadTimer: ReturnType<typeof setTimeout> | undefined;
    const publishChange = (change: ActionChange) => {
      clearTimeout(reloadTimer);
      reloadTimer = setTimeout(() => void reload(), RELOAD_DELAY_MS);
      for (const listener of listeners.current) listener(change);
    };
    const unsubscribe = api.subscribe(FollowActions, { appId }, { next: ({ change }) => publishChange(change) });
    return () => {
      clearTimeout(reloadTimer);
      unsubscribe();
    };
  }, [api, appId, reload]);
  const onChange = useCallback((listener: (change: ActionChange) => void) => {
    listeners.current.add(listener);
    return () => void listeners.current.delete(listener);
  }, []);
  return useMemo(() => ({ onChange }), [onChange]);
}

function useLogSubscription(
  api: ApiClient,
  appId: number | null,
  firstListener: (entry: LogEntry) => void,
): LogSubscription {
  const [isConnected, setConnected] = useState(false);
  const listeners = useRef(new Set([firstListener]));

  useEffect(() => {
    if (appId === null) return;
    // Studio's API client reads this object again after a reconnect. The service then sends only the entries after the ID in `after`.
    const variables: { appId: number; after: number | null } = { appId, after: null };
    const next = ({ entry }: { entry: LogEntry }) => {
      variables.after = entry.id;
      for (const listener of listeners.current) listener(entry);
    };
    const unsubscribeFunctions = [
      api.onConnected(setConnected),
      api.subscribe(FollowExecutionLog, variables, { next, onFailure: () => setConnected(false) }),
    ];
    return () => {
      for (const unsubscribe of unsubscribeFunctions) unsubscribe();
    };
  }, [api, appId]);

  const onEntry = useCallback((listener: (entry: LogEntry) => void) => {
    listeners.current.add(listener);
    return () => void listeners.current.delete(listener);
  }, []);
  return useMemo(() => ({ isConnected, onEntry }), [isConnected, onEntry]);
}

/**
 * Hook that returns `failingActionIds`, the IDs of the actions whose live version failed at its last run. It reads the app's latest failed
 * live runs once. Call `onEnd` with the log entry of each later run.
 */
function useLiveFailures(appId: number | null, list: ActionList | null) {
  // Waits for the list of actions, so that this request does not delay the list.
  const query = createQueryOptions(ListFailedLiveRuns, { appId: appId ?? 0 });
  const { value } = useResource({ ...query, enabled: list !== null, refetchOnWindowFocus: false });
  const client = useQueryClient();
  const onEnd = useCallback(
    (entry: LogEntry) => {
      const { taskId: actionId, createdAt: finishedAt } = entry;
      client.setQueriesData<ListFailedLiveRunsQuery>({ queryKey: [ListFailedLiveRuns] }, (old) => {
        if (!old) return old;
        const otherRuns = old.failures.runs.filter((run) => run.actionId !== actionId);
        return { failures: { runs: isFailedLogEntry(entry) ? [{ actionId, finishedAt }, ...otherRuns] : otherRuns } };
      });
    },
    [client],
  );
  const failingActionIds = useMemo(() => {
    const liveVersions = list?.published ?? [];
    // The service returns the newest run first. The reversed order sets the newest run of each action last, so it overwrites older runs.
    const runs = value?.failures.runs.toReversed() ?? [];
    const failures = new Map(runs.map(({ actionId, finishedAt }) => [actionId, finishedAt ?? ""]));
    const isFailing = ({ id, lastRunAt }: LiveVersion) =>
      lastRunAt !== null && (failures.get(id) ?? "") !== "" && Date.parse(failures.get(id)!) >= Date.parse(lastRunAt);
    return new Set(liveVersions.filter(isFailing).map(({ masterId }) => masterId));
  }, [value, list]);
  return { failingActionIds, onEnd };
}

export function useActions(api: ApiClient, appId: number | null): ActionsState {
  const client = useQueryClient();
  const query = createQueryOptions(ListActions, { appId: appId ?? 0 });
  // Subscriptions keep the list up to date, so it is not read again when the window gets the focus.
  const {
    value,
    fault,
    reload: reloadActions,
  } = useResource({ ...query, enabled: appId !== null, refetchOnWindowFocus: false });
  const actionList = useMemo((): ActionList | null => {
    if (!value) return null;
    const { actions, published, pagination } = value.actions;
    return { actions, published, total: pagination.total };
  }, [value]);

  const { failingActionIds, onEnd } = useLiveFailures(appId, actionList);
  const onEntry = useCallback(
    (entry: LogEntry) => {
      const { taskId, createdAt } = entry;
      onEnd(entry);
      const setLastRunAt = <Version extends { id: number }>(versions: Version[]) =>
        versions.map((version) => (version.id === taskId ? { ...version, lastRunAt: createdAt } : version));
      client.setQueriesData<ListActionsQuery>({ queryKey: [ListActions] }, (old) => {
        if (!old) return old;
        const { actions, published } = old.actions;
        return { actions: { ...old.actions, actions: setLastRunAt(actions), published: setLastRunAt(published) } };
      });
    },
    [client, onEnd],
  );
  const logSubscription = useLogSubscription(api, appId, onEntry);
  const changes = useActionChanges(api, appId, reloadActions);

  const isListComplete = actionList === null || actionList.total <= actionList.actions.length;
  const searchActions = useCallback(
    (search: string) => {
      if (appId === null || isListComplete || search === "") return null;
      return api.request(ListActions, { appId, search }).then(({ actions: page }) => page.actions);
    },
    [api, appId, isListComplete],
  );

  return useMemo(() => {
    const liveVersions = new Map(actionList?.published.map((version) => [version.masterId, version]));
    const actionsByVersionId = new Map<number, LoggedAction>();
    for (const { id, name } of actionList?.actions ?? []) {
      actionsByVersionId.set(id, { id, name, isLive: false });
      const liveVersion = liveVersions.get(id);
      if (liveVersion) actionsByVersionId.set(liveVersion.id, { id, name, isLive: true });
    }
    return {
      ...{ actionList, fault, reloadActions, searchActions, logSubscription, changes },
      findLiveVersion: (masterId) => liveVersions.get(masterId),
      hasFailed: (masterId) => failingActionIds.has(masterId),
      findLoggedAction: (taskId) => actionsByVersionId.get(taskId) ?? null,
    };
  }, [actionList, fault, failingActionIds, reloadActions, searchActions, logSubscription, changes]);
}
