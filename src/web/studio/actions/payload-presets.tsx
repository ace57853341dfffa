/**
 * Select that fills the payload from a preset (a saved payload) or from a past run. Buttons save the current payload as a preset, and
 * delete a preset.
 */
import { type FormEvent, useRef, useState } from "react";
import { DeletePayloadPreset, FindRuns, ReadRun, SavePayloadPreset } from "../documents.js";
import { type ApiClient, asApiError } from "../shared/api.js";
import { formatTime } from "../shared/format.js";
import type { PayloadPreset, RunRow } from "../shared/model.js";
import { ForEditors } from "../shell/role.js";
import { parsePayload } from "./payload-text.js";
import { usePayloadPresets } from "./use-presets.js";

const PAST_RUNS_SHOWN = 10;

interface PayloadPresetsProps {
  api: ApiClient;
  appId: number;
  /** ID of the action's draft. */
  actionId: number;
  payload: string;
  setPayload: (text: string) => void;
}

const formatPayload = (payload: unknown) => JSON.stringify(payload, null, 2);

function SavePresetForm({ savePreset, close }: { savePreset: (name: string) => Promise<boolean>; close: () => void }) {
  const [name, setName] = useState("");
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    const isSaved = await savePreset(name);
    setBusy(false);
    if (isSaved) close();
  };
  return (
    <form className="row" onSubmit={(event) => void submit(event)}>
      <input
        // biome-ignore lint/a11y/noAutofocus: the person has opened this field to type in it
        autoFocus
        aria-label="Name of this payload"
        placeholder="a name for it"
        maxLength={255}
        required
        readOnly={isBusy}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <button type="submit" disabled={isBusy}>
        Save payload
      </button>
      <button type="button" className="quiet" onClick={close}>
        Cancel
      </button>
    </form>
  );
}

export function PayloadPresets({ api, appId, actionId, payload, setPayload }: PayloadPresetsProps) {
  const { presets: storedPresets, fault, setFault, replacePresets } = usePayloadPresets(appId, actionId);
  const presets = storedPresets ?? [];
  const [pastRuns, setPastRuns] = useState<RunRow[]>([]);
  const [chosenOption, setChosenOption] = useState("");
  /** Preset that last filled the payload, with its time of change at that moment. Another person may have changed the preset since. */
  const [loadedPreset, setLoadedPreset] = useState<Pick<PayloadPreset, "name" | "updatedAt"> | null>(null);
  const [isNaming, setNaming] = useState(false);
  const shownPayload = useRef(payload);
  shownPayload.current = payload;
  /**
   * Number of presets and past runs that the person has chosen so far. If this number has grown when the payload of a
   * past run arrives, the panel ignores that payload.
   */
  const latestChoice = useRef(0);

  const readPastRuns = () =>
    api.request(FindRuns, { appId, actionId, limit: PAST_RUNS_SHOWN }).then(
      ({ found: page }) =>
        setPastRuns(page.runs.filter(({ finishedAt, state }) => finishedAt !== null && state !== "skipped")),
      // If the past runs cannot be read, the person can still choose a preset.
      () => undefined,
    );
  const loadPayload = async (value: string) => {
    latestChoice.current += 1;
    const choiceNumber = latestChoice.current;
    setChosenOption(value.startsWith("run ") ? "" : value);
    const preset = presets.find(({ name }) => value === `preset ${name}`);
    if (preset) {
      setLoadedPreset(preset);
      return setPayload(formatPayload(preset.payload));
    }
    const runId = Number(value.replace("run ", ""));
    if (!runId) return;
    try {
      const { run } = await api.request(ReadRun, { appId, runId });
      if (choiceNumber !== latestChoice.current || !run.log) return;
      if (shownPayload.current !== payload) setFault(`Not filled from run ${runId}: you have changed the payload.`);
      else setPayload(formatPayload(run.log.payload));
    } catch (error) {
      setFault(asApiError(error).message);
    }
  };
  /**
   * Returns the time of change of the preset that the person saw. The service rejects a save if the preset has changed
   * since. Returns null if the person saw no preset with this name.
   */
  const getSeenUpdatedAt = (name: string): string | null =>
    (loadedPreset?.name === name ? loadedPreset : presets.find((preset) => preset.name === name))?.updatedAt ?? null;
  const savePreset = async (name: string) => {
    const parsed = parsePayload(payload);
    if ("fault" in parsed) {
      setFault(parsed.fault);
      return false;
    }
    const ifUpdatedAt = getSeenUpdatedAt(name.trim());
    const savedPresets = await replacePresets(
      api.request(SavePayloadPreset, { appId, actionId, name, payload: parsed.payload, ifUpdatedAt }),
    );
    if (!savedPresets) return false;
    setChosenOption(`preset ${name.trim()}`);
    setLoadedPreset(savedPresets.find((preset) => preset.name === name.trim()) ?? null);
    return true;
  };
  const preset = presets.find(({ name }) => chosenOption === `preset ${name}`);
  const removePreset = async () => {
    if (!preset) return;
    const ifUpdatedAt = getSeenUpdatedAt(preset.name) ?? preset.updatedAt;
    if (await replacePresets(api.request(DeletePayloadPreset, { appId, actionId, name: preset.name, ifUpdatedAt })))
      setChosenOption("");
  };
  return (
    <div className="presets">
      {isNaming ? (
        <SavePresetForm savePreset={savePreset} close={() => setNaming(false)} />
      ) : (
        <div className="row">
          <select
            aria-label="Fill the payload from"
            value={preset ? chosenOption : ""}
            onFocus={() => void readPastRuns()}
            onChange={(event) => void loadPayload(event.target.value)}
          >
            <option value="">Fill from…</option>
            {presets.length > 0 && (
              <optgroup label="Sample payloads">
                {presets.map(({ name }) => (
                  <option key={name} value={`preset ${name}`}>
                    {name}
                  </option>
                ))}
              </optgroup>
            )}
            {pastRuns.length > 0 && (
              <optgroup label="Past runs">
                {pastRuns.map(({ id, state, queuedAt }) => (
                  <option key={id} value={`run ${id}`}>
                    run {id}, {state}, {formatTime(queuedAt)}
                  </option>
                ))}
              </optgroup>
            )}
          </select>
          <ForEditors>
            <button type="button" className="link" onClick={() => setNaming(true)}>
              Save this payload
            </button>
          </ForEditors>
          {preset && (
            <button type="button" className="link danger-text" onClick={() => void removePreset()}>
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
