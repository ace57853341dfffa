/** Filters of the list of runs. The URL contains each filter. */
import { useEffect, useState } from "react";
import type { TriggerType } from "../../../data/action-types.js";
import type { ActionList } from "../shared/model.js";
import { COPY_WORDS, TRIGGER_WORDS } from "./run-words.js";
import { COPIES, RANGES, type RunsQuery, STATES, TRIGGERS } from "./runs-query.js";

/** Delay after the last key press before the search starts. */
const TYPED_MS = 350;

interface ChoiceProps {
  label: string;
  value: string | undefined;
  /** Options of the filter, each with its label. */
  options: [string, string][];
  /** Label of the option that sets no filter. */
  all: string;
  choose: (value: string) => void;
}

function Choice({ label, value, options, all, choose }: ChoiceProps) {
  return (
    <label className="choice">
      <span className="unseen">{label}</span>
      <select
        name={label.toLowerCase()}
        value={value ?? ""}
        data-set={value !== undefined}
        onChange={(event) => choose(event.target.value)}
      >
        <option value="">{all}</option>
        {options.map(([option, words]) => (
          <option key={option} value={option}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}

function Removable({ words, remove }: { words: string; remove: () => void }) {
  return (
    <button type="button" className="chip removable" aria-label={`${words}: show others too`} onClick={remove}>
      {words} <span aria-hidden="true">✕</span>
    </button>
  );
}

function useTyped(search: string, change: (search: string) => void) {
  const [typed, setTyped] = useState(search);
  useEffect(() => setTyped(search), [search]);
  useEffect(() => {
    if (typed.trim() === search) return;
    const due = setTimeout(() => change(typed.trim()), TYPED_MS);
    return () => clearTimeout(due);
  }, [typed, search, change]);
  return { typed, setTyped };
}

interface RunsFiltersProps {
  query: RunsQuery;
  /** Actions to choose from; null while they are loaded. */
  list: ActionList | null;
  change: (change: RunsQuery) => void;
  setSearch: (search: string) => void;
  clear: () => void;
}

const filterWords = (trigger: TriggerType): string =>
  trigger === "http" ? `${TRIGGER_WORDS.http} (added by this service)` : TRIGGER_WORDS[trigger];

export function RunsFilters({ query, list, change, setSearch, clear }: RunsFiltersProps) {
  const { typed, setTyped } = useTyped(query.search ?? "", setSearch);
  const names = (list?.actions ?? []).map(({ id, name }): [string, string] => [String(id), name]);
  const known = query.action === undefined || names.some(([id]) => id === query.action);
  const actions: [string, string][] = known ? names : [[query.action!, `action ${query.action}`], ...names];
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
      <Choice
        label="Action"
        all="all actions"
        value={query.action}
        options={actions}
        choose={(action) => change({ action })}
      />
      <Choice
        label="State"
        all="any state"
        value={query.state}
        options={STATES.map((state) => [state, state])}
        choose={(state) => change({ state })}
      />
      <Choice
        label="Trigger"
        all="any trigger"
        value={query.trigger}
        options={TRIGGERS.map((trigger) => [trigger, filterWords(trigger)])}
        choose={(trigger) => change({ trigger })}
      />
      <Choice
        label="Copy"
        all="draft and live"
        value={query.copy}
        options={COPIES.map((copy) => [copy, COPY_WORDS[copy]])}
        choose={(copy) => change({ copy })}
      />
      <Choice
        label="Time"
        all="any time"
        value={query.range}
        options={Object.entries(RANGES).map(([range, { label }]) => [range, label])}
        choose={(range) => change({ range })}
      />
      {query.person !== undefined && (
        <Removable words={`asked for by person ${query.person}`} remove={() => change({ person: "" })} />
      )}
      {query.version !== undefined && (
        <Removable words={`of version ${query.version}`} remove={() => change({ version: "" })} />
      )}
      {Object.keys(query).length > 0 && (
        <button type="button" className="link" onClick={clear}>
          Clear filters
        </button>
      )}
    </search>
  );
}
