/** Filters of the list of runs. The URL of the page contains the value of each filter. */
import SlidersHorizontal from "lucide-react/icons/sliders-horizontal";
import { useEffect, useRef, useState } from "react";
import type { TriggerType } from "../../../data/action-types.js";
import { capitalize } from "../shared/format.js";
import type { ActionList } from "../shared/model.js";
import { useIsNarrow } from "../shared/use-narrow.js";
import { TRIGGER_WORDS, VERSION_WORDS } from "./run-words.js";
import { RANGES, RUN_STATES, type RunsQuery, TRIGGER_TYPES, VERSION_KINDS } from "./runs-query.js";

/** Delay after the last key press before the list of runs is searched. */
const SEARCH_DELAY_MS = 350;

interface FilterSelectProps {
  label: string;
  value: string | undefined;
  /** Values that the person can choose, each with its label. */
  options: [string, string][];
  /** Label of the option that removes the filter. */
  noFilterLabel: string;
  choose: (value: string) => void;
}

function FilterSelect({ label, value, options, noFilterLabel, choose }: FilterSelectProps) {
  return (
    <label className="choice">
      <span className="unseen">{label}</span>
      <select
        name={label.toLowerCase()}
        value={value ?? ""}
        data-set={value !== undefined}
        onChange={(event) => choose(event.target.value)}
      >
        <option value="">{noFilterLabel}</option>
        {options.map(([option, words]) => (
          <option key={option} value={option}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}

function RemovableFilter({ words, remove }: { words: string; remove: () => void }) {
  return (
    <button type="button" className="chip removable" aria-label={`${words}: show others too`} onClick={remove}>
      {words} <span aria-hidden="true">✕</span>
    </button>
  );
}

function useTypedSearch(search: string, changeFilters: (search: string) => void) {
  const [typed, setTyped] = useState(search);
  // Search text that this field last wrote to the URL or read from it. If the URL contains this text, the field keeps what the person has
  // typed since.
  const known = useRef(search);
  useEffect(() => {
    if (search !== known.current) setTyped(search);
    known.current = search;
  }, [search]);
  useEffect(() => {
    if (typed.trim() === search) return;
    const timer = setTimeout(() => {
      known.current = typed.trim();
      changeFilters(known.current);
    }, SEARCH_DELAY_MS);
    return () => clearTimeout(timer);
  }, [typed, search, changeFilters]);
  return { typed, setTyped };
}

interface RunsFiltersProps {
  query: RunsQuery;
  /** Actions of the app for the filter by action; null until they are loaded. */
  list: ActionList | null;
  change: (change: RunsQuery) => void;
  setSearch: (search: string) => void;
  clear: () => void;
}

const triggerLabel = (trigger: TriggerType): string =>
  trigger === "http" ? `${TRIGGER_WORDS.http} (added by this service)` : TRIGGER_WORDS[trigger];

function FilterSelects({ query, list, change }: Pick<RunsFiltersProps, "query" | "list" | "change">) {
  const names = (list?.actions ?? []).map(({ id, name }): [string, string] => [String(id), name]);
  const isListed = query.action === undefined || names.some(([id]) => id === query.action);
  const actions: [string, string][] = isListed ? names : [[query.action!, `Action ${query.action}`], ...names];
  return (
    <>
      <FilterSelect
        label="Action"
        noFilterLabel="All actions"
        value={query.action}
        options={actions}
        choose={(action) => change({ action })}
      />
      <FilterSelect
        label="State"
        noFilterLabel="Any state"
        value={query.state}
        options={RUN_STATES.map((state) => [state, capitalize(state)])}
        choose={(state) => change({ state })}
      />
      <FilterSelect
        label="Trigger"
        noFilterLabel="Any trigger"
        value={query.trigger}
        options={TRIGGER_TYPES.map((trigger) => [trigger, capitalize(triggerLabel(trigger))])}
        choose={(trigger) => change({ trigger })}
      />
      <FilterSelect
        label="Copy"
        noFilterLabel="Draft and live"
        value={query.copy}
        options={VERSION_KINDS.map((copy) => [copy, capitalize(VERSION_WORDS[copy])])}
        choose={(copy) => change({ copy })}
      />
      <FilterSelect
        label="Time"
        noFilterLabel="Any time"
        value={query.range}
        options={Object.entries(RANGES).map(([range, { label }]) => [range, capitalize(label)])}
        choose={(range) => change({ range })}
      />
    </>
  );
}

const SELECTED_FILTERS = ["action", "state", "trigger", "copy", "range"] as const;

export function RunsFilters({ query, list, change, setSearch, clear }: RunsFiltersProps) {
  const { typed, setTyped } = useTypedSearch(query.search ?? "", setSearch);
  const isNarrow = useIsNarrow();
  const [isOpen, setOpen] = useState(false);
  const chosenCount = SELECTED_FILTERS.filter((name) => query[name] !== undefined).length;
  return (
    <search className="row runs-filters">
      <input
        type="search"
        aria-label="Search in payload, result, error, console and hosts"
        placeholder="Search payload, result, error, console, host"
        maxLength={200}
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
      />
      {/* On a phone, the selects would push the runs off the screen. */}
      {isNarrow && (
        <button type="button" className="with-icon" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <SlidersHorizontal size={14} aria-hidden /> Filters{chosenCount > 0 && ` (${chosenCount})`}
        </button>
      )}
      {(isOpen || !isNarrow) && <FilterSelects {...{ query, list, change }} />}
      {query.person !== undefined && (
        <RemovableFilter words={`asked for by person ${query.person}`} remove={() => change({ person: "" })} />
      )}
      {query.version !== undefined && (
        <RemovableFilter words={`of version ${query.version}`} remove={() => change({ version: "" })} />
      )}
      {Object.keys(query).length > 0 && (
        <button type="button" className="link" onClick={clear}>
          Clear filters
        </button>
      )}
    </search>
  );
}
