/** Filters of the list of runs. The URL of the page contains the value of each filter. */
import SlidersHorizontal from "icon:sliders-horizontal";
import { useState } from "react";
import type { TriggerType } from "../../../data/action-types.js";
import { capitalize } from "../shared/format.js";
import type { ActionList } from "../shared/model.js";
import { useIsNarrowWindow } from "../shared/use-media-query.js";
import { useTypedSearch } from "../shared/use-typed-search.js";
import { TRIGGER_WORDS, VERSION_WORDS } from "./run-words.js";
import { RUN_STATES, type RunsUrlQuery, TIME_RANGES, TRIGGER_TYPES, VERSION_KINDS } from "./runs-query.js";

interface FilterSelectProps {
  label: string;
  value: string | undefined;
  /** Values that the person can choose, each with its label. */
  options: [string, string][];
  /** Label of the option that removes the filter. */
  noFilterLabel: string;
  onChoose: (value: string) => void;
}

function FilterSelect({ label, value, options, noFilterLabel, onChoose }: FilterSelectProps) {
  return (
    <label className="choice">
      <span className="unseen">{label}</span>
      <select
        name={label.toLowerCase()}
        value={value ?? ""}
        data-set={value !== undefined}
        onChange={(event) => onChoose(event.target.value)}
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

interface RunsFiltersProps {
  query: RunsUrlQuery;
  /** Actions of the app for the filter by action; null until they are loaded. */
  actionList: ActionList | null;
  changeQuery: (change: RunsUrlQuery) => void;
  setSearch: (search: string) => void;
  clearFilters: () => void;
}

const getTriggerLabel = (trigger: TriggerType): string =>
  trigger === "http" ? `${TRIGGER_WORDS.http} (added by this service)` : TRIGGER_WORDS[trigger];

function FilterSelects({
  query,
  actionList,
  changeQuery,
}: Pick<RunsFiltersProps, "query" | "actionList" | "changeQuery">) {
  const names = (actionList?.actions ?? []).map(({ id, name }): [string, string] => [String(id), name]);
  const isListed = query.action === undefined || names.some(([id]) => id === query.action);
  const actions: [string, string][] = isListed ? names : [[query.action!, `Action ${query.action}`], ...names];
  return (
    <>
      <FilterSelect
        label="Action"
        noFilterLabel="All actions"
        value={query.action}
        options={actions}
        onChoose={(action) => changeQuery({ action })}
      />
      <FilterSelect
        label="State"
        noFilterLabel="Any state"
        value={query.state}
        options={RUN_STATES.map((state) => [state, capitalize(state)])}
        onChoose={(state) => changeQuery({ state })}
      />
      <FilterSelect
        label="Trigger"
        noFilterLabel="Any trigger"
        value={query.trigger}
        options={TRIGGER_TYPES.map((trigger) => [trigger, capitalize(getTriggerLabel(trigger))])}
        onChoose={(trigger) => changeQuery({ trigger })}
      />
      <FilterSelect
        label="Copy"
        noFilterLabel="Draft and live"
        value={query.copy}
        options={VERSION_KINDS.map((copy) => [copy, capitalize(VERSION_WORDS[copy])])}
        onChoose={(copy) => changeQuery({ copy })}
      />
      <FilterSelect
        label="Time"
        noFilterLabel="Any time"
        value={query.range}
        options={Object.entries(TIME_RANGES).map(([range, { label }]) => [range, capitalize(label)])}
        onChoose={(range) => changeQuery({ range })}
      />
    </>
  );
}

const SELECTED_FILTERS = ["action", "state", "trigger", "copy", "range"] as const;

export function RunsFilters({ query, actionList, changeQuery, setSearch, clearFilters }: RunsFiltersProps) {
  const { typedSearch, setTypedSearch } = useTypedSearch(query.search ?? "", setSearch);
  const isNarrow = useIsNarrowWindow();
  const [isOpen, setOpen] = useState(false);
  const chosenCount = SELECTED_FILTERS.filter((name) => query[name] !== undefined).length;
  return (
    <search className="row runs-filters">
      <input
        type="search"
        aria-label="Search in payload, result, error, console and hosts"
        placeholder="Search payload, result, error, console, host"
        maxLength={200}
        value={typedSearch}
        onChange={(event) => setTypedSearch(event.target.value)}
      />
      {/* On a phone, the selects are hidden at first. Otherwise the list of runs would be below the visible area. */}
      {isNarrow && (
        <button type="button" className="with-icon" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <SlidersHorizontal size={14} aria-hidden /> Filters{chosenCount > 0 && ` (${chosenCount})`}
        </button>
      )}
      {(isOpen || !isNarrow) && <FilterSelects {...{ query, actionList, changeQuery }} />}
      {query.person !== undefined && (
        <RemovableFilter words={`requested by person ${query.person}`} remove={() => changeQuery({ person: "" })} />
      )}
      {query.version !== undefined && (
        <RemovableFilter words={`of version ${query.version}`} remove={() => changeQuery({ version: "" })} />
      )}
      {Object.keys(query).length > 0 && (
        <button type="button" className="link" onClick={clearFilters}>
          Clear filters
        </button>
      )}
    </search>
  );
}
