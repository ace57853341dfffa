/** List of the app's actions with their states. A person can search it, and move the focus by arrow keys. */
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { TRIGGER_WORDS } from "../runs/run-words.js";
import { asApiError } from "../shared/api.js";
import { formatAge, formatExactTime } from "../shared/format.js";
import type { ActionSummary, LiveVersion } from "../shared/model.js";
import { useMediaQuery } from "../shared/use-media-query.js";
import { ForEditors } from "../shell/role.js";
import type { Navigation } from "../shell/studio-route.js";
import type { ActionsState } from "./use-actions.js";

/** Delay after the last key press before the search starts. */
const SEARCH_DELAY_MS = 250;

function matchesWords({ name, description, environment, triggers }: ActionSummary, words: string[]): boolean {
  const kinds = triggers.flatMap(({ trigger }) => [trigger, TRIGGER_WORDS[trigger]]);
  const text = [name, description, environment, ...kinds].join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}

interface PublicationState {
  className: string;
  label: string;
  tooltip: string;
}

function describePublication(action: ActionSummary, liveVersion: LiveVersion | undefined): PublicationState {
  if (!liveVersion) return { className: "", label: "draft", tooltip: "not published" };
  if (Date.parse(action.updatedAt) <= Date.parse(liveVersion.updatedAt)) {
    return { className: "live", label: "live", tooltip: "published as it is" };
  }
  return { className: "behind", label: "changed", tooltip: "live, and changed since it was published" };
}

function findLastRunTime(action: ActionSummary, liveVersion: LiveVersion | undefined): string | null {
  const times = [action.lastRunAt, liveVersion?.lastRunAt ?? null].filter((time) => time !== null);
  return times.sort().at(-1) ?? null;
}

interface ActionRowProps {
  action: ActionSummary;
  liveVersion: LiveVersion | undefined;
  hasFailed: boolean;
  isCurrent: boolean;
  openAction: () => void;
}

function ActionRow({ action, liveVersion, hasFailed, isCurrent, openAction }: ActionRowProps) {
  const { name, active, environment, triggers } = action;
  const { className, label, tooltip } = describePublication(action, liveVersion);
  const lastRunTime = findLastRunTime(action, liveVersion);
  const state = [!active && "inactive", hasFailed && "the last live run failed"].filter(Boolean).join(", ");
  // Most actions run only on the server, so the list shows the environment only for other actions.
  const kinds = [
    ...(environment === "server" ? [] : [environment]),
    ...new Set(triggers.map(({ trigger }) => TRIGGER_WORDS[trigger])),
  ];
  const row = useRef<HTMLLIElement>(null);
  useEffect(() => {
    // When the page opens by a URL, the selected action may be far down in the list. So the list scrolls to this
    // action.
    if (isCurrent) row.current?.scrollIntoView({ block: "nearest" });
  }, [isCurrent]);
  return (
    <li ref={row}>
      <button type="button" className="action" aria-current={isCurrent ? "true" : undefined} onClick={openAction}>
        <span className="action-name">
          <span className={hasFailed ? "dot failed" : active ? "dot on" : "dot"} title={state || "active"} />
          <b>{name}</b>
          {state && <span className="unseen">{state}</span>}
          <span className={`chip ${className}`} title={tooltip}>
            {label}
          </span>
        </span>
        <span className="action-facts">
          <span>{kinds.join(" · ") || "no trigger"}</span>
          <span title={lastRunTime ? `last run ${formatExactTime(lastRunTime)}` : undefined}>
            {lastRunTime ? formatAge(lastRunTime) : "never run"}
          </span>
        </span>
      </button>
    </li>
  );
}

/** Moves the focus between the rows and the search box by the arrow keys. */
function moveFocus(event: KeyboardEvent<HTMLElement>): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined) return;
  const focusableElements = [...event.currentTarget.querySelectorAll<HTMLElement>("input, .action")];
  const next = focusableElements[focusableElements.indexOf(document.activeElement as HTMLElement) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

interface ActionListProps {
  actions: ActionsState;
  selectedId: number | "new" | null;
  go: Navigation["go"];
}

interface ActionSearch {
  /**
   * Actions that the service found. If null, the page searches only the actions that it has loaded. This is the case before the service
   * responds, after a failed search, and if the page has loaded all actions.
   */
  actions: ActionSummary[] | null;
  /** Error message if the search in the service failed. The page then searches only the part of the list that it has loaded. */
  fault: string | null;
}

const NOT_SEARCHED: ActionSearch = { actions: null, fault: null };

/** Hook that searches the actions in the service after SEARCH_DELAY_MS. Returns NOT_SEARCHED until it has the result. */
function useActionSearch({ searchActions }: ActionsState, search: string): ActionSearch {
  const [lastSearch, setLastSearch] = useState({ searchText: "", ...NOT_SEARCHED });
  useEffect(() => {
    let isOver = false;
    const timer = setTimeout(() => {
      const show = (outcome: ActionSearch) => isOver || setLastSearch({ searchText: search, ...outcome });
      const searchResponse = searchActions(search.trim()) ?? Promise.resolve(null);
      void searchResponse.then(
        (actions) => show({ actions, fault: null }),
        (error: unknown) => show({ actions: null, fault: asApiError(error).message }),
      );
    }, SEARCH_DELAY_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [searchActions, search]);
  // Ignores a result that belongs to an earlier search text.
  return lastSearch.searchText === search ? lastSearch : NOT_SEARCHED;
}

export function ActionList({ actions, selectedId, go }: ActionListProps) {
  const { actionList, fault, findLiveVersion, hasFailed, reloadActions } = actions;
  const [search, setSearch] = useState("");
  const { actions: serviceMatches, fault: searchFault } = useActionSearch(actions, search);
  const box = useRef<HTMLInputElement>(null);
  // Phones and tablets have no key "/", so the search box does not mention this shortcut there.
  const isTouch = useMediaQuery("(pointer: coarse)");
  const matchingActions = useMemo(() => {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    const loadedMatches = actionList?.actions.filter((action) => matchesWords(action, words)) ?? [];
    const ids = new Set(loadedMatches.map(({ id }) => id));
    return [...loadedMatches, ...(words.length > 0 ? (serviceMatches ?? []) : []).filter(({ id }) => !ids.has(id))];
  }, [actionList, search, serviceMatches]);

  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent) => {
      if (event.key !== "/" || isTyping(event.target)) return;
      box.current?.focus();
      event.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);

  return (
    <section className="action-list" aria-label="Actions" onKeyDown={moveFocus}>
      <div className="list-head">
        <input
          ref={box}
          type="search"
          placeholder={isTouch ? "Search" : "Search   /"}
          aria-label="Search actions"
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
        <ForEditors>
          <button type="button" className="primary" title="Alt+N" onClick={() => go({ item: "new" })}>
            New
          </button>
        </ForEditors>
      </div>
      {fault && (
        <p className="fault" role="alert">
          {fault}{" "}
          <button type="button" className="link" onClick={() => void reloadActions()}>
            Try again
          </button>
        </p>
      )}
      {searchFault !== null && (
        <p className="fault" role="alert">
          The search failed: {searchFault}
        </p>
      )}
      {actionList && matchingActions.length === 0 && search !== "" && searchFault === null && (
        <p className="hint">No action matches.</p>
      )}
      <ul>
        {selectedId === "new" && (
          <li>
            <span className="action" aria-current="true">
              <b>New action</b>
            </span>
          </li>
        )}
        {matchingActions.map((action) => (
          <ActionRow
            key={action.id}
            action={action}
            liveVersion={findLiveVersion(action.id)}
            hasFailed={hasFailed(action.id)}
            isCurrent={action.id === selectedId}
            openAction={() => go({ item: String(action.id) })}
          />
        ))}
      </ul>
      {actionList && actionList.total > actionList.actions.length && (
        <p className="hint">
          {search === ""
            ? `The newest ${actionList.actions.length} of ${actionList.total} actions. Search to find the others.`
            : searchFault === null
              ? `The search covers all ${actionList.total} actions.`
              : `Only the newest ${actionList.actions.length} of ${actionList.total} actions were searched.`}
        </p>
      )}
    </section>
  );
}
