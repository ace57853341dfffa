/** Form fields for the triggers of an action: one row per trigger, with the filter fields of its kind. */
import X from "icon:x";
import { useEffect, useRef } from "react";
import type { TriggerType } from "../../../data/action-types.js";
import { ANALYTICS_EVENT_TYPES, LOG_EVENT_TYPES } from "../../../rules/trigger-match.js";
import { FormField } from "../shared/field.js";
import { describeAccess } from "./access-text.js";
import { createTriggerDraft, type TriggerDraft } from "./draft.js";
import type { ActionFieldsProps } from "./fields-props.js";
import { HttpFields } from "./http-fields.js";

type TriggerKind = [trigger: TriggerType, label: string];

/** Trigger kinds that the original specification of the service defines. */
const SPECIFIED_TRIGGER_KINDS: readonly TriggerKind[] = [
  ["manual", "On demand"],
  ["schedule", "On schedule"],
  ["log", "On a log event"],
  ["analytics", "On an analytics event"],
];
/** Trigger kinds that this service adds to the original specification. */
const ADDED_TRIGGER_KINDS: readonly TriggerKind[] = [["http", "On an HTTP request"]];
const TRIGGER_KINDS = [...SPECIFIED_TRIGGER_KINDS, ...ADDED_TRIGGER_KINDS];

/** Trigger kinds that one action can have several times. */
const REPEATABLE_TRIGGERS: readonly TriggerType[] = ["log", "analytics", "http"];

const renderOption = ([kind, label]: TriggerKind) => (
  <option key={kind} value={kind}>
    {label}
  </option>
);

interface TriggerFilterProps {
  triggerDraft: TriggerDraft;
  changeTrigger: (change: Partial<TriggerDraft>) => void;
}

function LogFilter({ triggerDraft, changeTrigger }: TriggerFilterProps) {
  return (
    <>
      <input
        aria-label="Log event type"
        list="log-event-types"
        placeholder="event type, as dataSource.entry.create"
        value={triggerDraft.eventType}
        onChange={(event) => changeTrigger({ eventType: event.target.value })}
      />
      {triggerDraft.eventType.startsWith("dataSource.") && (
        <input
          aria-label="Data source id"
          type="number"
          min={1}
          placeholder="data source id, any when empty"
          value={triggerDraft.dataSourceId}
          onChange={(event) => changeTrigger({ dataSourceId: event.target.value })}
        />
      )}
      <datalist id="log-event-types">
        {LOG_EVENT_TYPES.map((type) => (
          <option key={type} value={type} />
        ))}
      </datalist>
    </>
  );
}

function AnalyticsFilter({ triggerDraft, changeTrigger }: TriggerFilterProps) {
  return (
    <>
      <select
        aria-label="Analytics event type"
        value={triggerDraft.eventType}
        onChange={(event) => changeTrigger({ eventType: event.target.value })}
      >
        {ANALYTICS_EVENT_TYPES.map((type) => (
          <option key={type}>{type}</option>
        ))}
      </select>
      <textarea
        aria-label="Event data that must match, as JSON"
        className="mono"
        rows={2}
        spellCheck={false}
        placeholder={'{"_pageId": 12}, all events when empty'}
        value={triggerDraft.dataFilterText}
        onChange={(event) => changeTrigger({ dataFilterText: event.target.value })}
      />
    </>
  );
}

/**
 * Hook that scrolls to the row of a trigger that the person has added. For a schedule it scrolls to the schedule
 * builder, which is outside the row.
 */
function useScrollToAddedTrigger(triggers: readonly TriggerDraft[]) {
  const rows = useRef<HTMLDivElement>(null);
  const count = useRef(triggers.length);
  const kind = triggers.at(-1)?.trigger;
  useEffect(() => {
    const isAdded = triggers.length > count.current;
    count.current = triggers.length;
    if (!isAdded) return;
    const addedRow =
      kind === "schedule"
        ? document.querySelector(".fields .schedule-builder")
        : [...(rows.current?.querySelectorAll(".trigger") ?? [])].at(-1);
    addedRow?.scrollIntoView({ block: "nearest" });
  }, [triggers.length, kind]);
  return rows;
}

/** Time zone of the browser, the default for a new schedule. */
const BROWSER_TIME_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function TriggerFields({
  draft: { triggers, access, frequency, timezone },
  fault,
  changeDraft,
}: ActionFieldsProps) {
  const box = useScrollToAddedTrigger(triggers);
  const setTriggers = (rows: TriggerDraft[]) => changeDraft({ triggers: rows });
  const addTrigger = (trigger: TriggerType) => {
    const isNewSchedule = trigger === "schedule" && frequency === "" && timezone === "";
    changeDraft({
      triggers: [...triggers, createTriggerDraft(trigger)],
      ...(isNewSchedule && { timezone: BROWSER_TIME_ZONE }),
    });
  };
  const changeRow = (key: number) => (part: Partial<TriggerDraft>) =>
    setTriggers(triggers.map((row) => (row.rowKey === key ? { ...row, ...part } : row)));
  const canAdd = ([kind]: TriggerKind) =>
    REPEATABLE_TRIGGERS.includes(kind) || !triggers.some(({ trigger }) => trigger === kind);
  return (
    <FormField name="triggers" label="Triggers" fault={fault}>
      {(fieldAttributes) => (
        <div ref={box} className="rows">
          {triggers.map((row) => (
            <div key={row.rowKey} className="trigger">
              <div className="row">
                <span className="grow">{TRIGGER_KINDS.find(([kind]) => kind === row.trigger)?.[1] ?? row.trigger}</span>
                <button
                  type="button"
                  className="quiet icon"
                  aria-label={`Remove the ${row.trigger} trigger`}
                  onClick={() => setTriggers(triggers.filter(({ rowKey }) => rowKey !== row.rowKey))}
                >
                  <X size={14} aria-hidden />
                </button>
              </div>
              {row.trigger === "manual" && <p className="hint">{describeAccess(access.who)}</p>}
              {row.trigger === "log" && <LogFilter triggerDraft={row} changeTrigger={changeRow(row.rowKey)} />}
              {row.trigger === "analytics" && (
                <AnalyticsFilter triggerDraft={row} changeTrigger={changeRow(row.rowKey)} />
              )}
              {row.trigger === "http" && (
                <HttpFields
                  http={row.http}
                  changeHttp={(part) => changeRow(row.rowKey)({ http: { ...row.http, ...part } })}
                />
              )}
            </div>
          ))}
          <select
            {...fieldAttributes}
            value=""
            onChange={({ target }) => target.value !== "" && addTrigger(target.value as TriggerType)}
          >
            <option value="" disabled>
              Add a trigger…
            </option>
            <optgroup label="Standard">{SPECIFIED_TRIGGER_KINDS.filter(canAdd).map(renderOption)}</optgroup>
            <optgroup label="Added by this service">{ADDED_TRIGGER_KINDS.filter(canAdd).map(renderOption)}</optgroup>
          </select>
        </div>
      )}
    </FormField>
  );
}
