/** Fills the payload from what is kept with the action or from a past run, and keeps what stands there under a name. */
import { useCallback, useEffect, useState } from "react";
import { DeletePreset, FindRuns, ListPresets, ReadRun, SavePreset } from "../documents.js";
import { type Api, asApiError } from "../shared/api.js";
import { moment } from "../shared/format.js";
import type { Preset, RunRow } from "../shared/model.js";
import { Changes } from "../shell/role.js";
import { parsedPayload } from "./payload-text.js";

const PAST_RUNS = 10;

interface PayloadPresetsProps {
  api: Api;
  appId: number;
  /** The master. */
  actionId: number;
  payload: string;
  setPayload: (text: string) => void;
}

function usePresets(api: Api, appId: number, actionId: number) {
  const [presets, setPresets] = useState<Preset[]>([]);
  const [fault, setFault] = useState<string | null>(null);
  const take = useCallback(async (asked: Promise<{ presets: Preset[] }>): Promise<boolean> => {
    try {
      setPresets((await asked).presets);
      setFault(null);
      return true;
    } catch (error) {
      setFault(asApiError(error).message);
      return false;
    }
  }, []);
  useEffect(() => void take(api.ask(ListPresets, { appId, actionId })), [api, appId, actionId, take]);
  return { presets, fault, setFault, take };
}

const indented = (payload: unknown) => JSON.stringify(payload, null, 2);

function KeepAs({ keep, close }: { keep: (name: string) => Promise<boolean>; close: () => void }) {
  const [name, setName] = useState("");
  return (
    <form
      className="row"
      onSubmit={(event) => {
        event.preventDefault();
        void keep(name).then((kept) => kept && close());
      }}
    >
      <input
        // biome-ignore lint/a11y/noAutofocus: the person has asked to type here
        autoFocus
        aria-label="Name of this payload"
        placeholder="a name for it"
        maxLength={255}
        required
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <button type="submit">Keep</button>
      <button type="button" className="quiet" onClick={close}>
        Cancel
      </button>
    </form>
  );
}

export function PayloadPresets({ api, appId, actionId, payload, setPayload }: PayloadPresetsProps) {
  const { presets, fault, setFault, take } = usePresets(api, appId, actionId);
  const [past, setPast] = useState<RunRow[]>([]);
  const [chosen, setChosen] = useState("");
  const [isNaming, setNaming] = useState(false);

  const lookBack = () =>
    api.ask(FindRuns, { appId, actionId, limit: PAST_RUNS }).then(
      ({ found }) => setPast(found.runs.filter(({ finishedAt, state }) => finishedAt !== null && state !== "skipped")),
      // What is kept can still be chosen.
      () => undefined,
    );
  const fill = async (value: string) => {
    setChosen(value.startsWith("run ") ? "" : value);
    const preset = presets.find(({ name }) => value === `preset ${name}`);
    if (preset) return setPayload(indented(preset.payload));
    const runId = Number(value.replace("run ", ""));
    if (!runId) return;
    try {
      const { run } = await api.ask(ReadRun, { appId, runId });
      if (run.log) setPayload(indented(run.log.payload));
    } catch (error) {
      setFault(asApiError(error).message);
    }
  };
  const keep = async (name: string) => {
    const parsed = parsedPayload(payload);
    if ("fault" in parsed) {
      setFault(parsed.fault);
      return false;
    }
    const ifUpdatedAt = presets.find((one) => one.name === name.trim())?.updatedAt ?? null;
    const kept = await take(api.ask(SavePreset, { appId, actionId, name, payload: parsed.payload, ifUpdatedAt }));
    if (kept) setChosen(`preset ${name.trim()}`);
    return kept;
  };
  const preset = presets.find(({ name }) => chosen === `preset ${name}`);
  const remove = async () => {
    if (
      preset &&
      (await take(api.ask(DeletePreset, { appId, actionId, name: preset.name, ifUpdatedAt: preset.updatedAt })))
    )
      setChosen("");
  };
  return (
    <div className="presets">
      {isNaming ? (
        <KeepAs keep={keep} close={() => setNaming(false)} />
      ) : (
        <div className="row">
          <select
            aria-label="Fill the payload from"
            value={preset ? chosen : ""}
            onFocus={() => void lookBack()}
            onChange={(event) => void fill(event.target.value)}
          >
            <option value="">Fill from…</option>
            {presets.length > 0 && (
              <optgroup label="Kept with the action">
                {presets.map(({ name }) => (
                  <option key={name} value={`preset ${name}`}>
                    {name}
                  </option>
                ))}
              </optgroup>
            )}
            {past.length > 0 && (
              <optgroup label="Past runs">
                {past.map(({ id, state, queuedAt }) => (
                  <option key={id} value={`run ${id}`}>
                    run {id}, {state}, {moment(queuedAt)}
                  </option>
                ))}
              </optgroup>
            )}
          </select>
          <Changes>
            <button type="button" className="link" onClick={() => setNaming(true)}>
              Keep this payload
            </button>
          </Changes>
          {preset && (
            <button type="button" className="link danger-text" onClick={() => void remove()}>
              Delete “{preset.name}”
            </button>
          )}
        </div>
      )}
      <p className="fault" role="alert">
        {fault}
      </p>
    </div>
  );
}
