/**
 * Form for the e-mail server or the SMS provider of an app, with a test message. Studio cannot read the stored values, so each save
 * replaces all of them.
 */
import { type ChangeEvent, type FormEvent, useId, useState } from "react";
import { useSettings } from "../settings/use-settings.js";
import { formatAge } from "../shared/format.js";
import { useNewResourceForm } from "../shared/use-new-values.js";
import { useUnsavedChanges } from "../shared/use-unsaved-changes.js";
import type { PageProps } from "../shell/page-props.js";
import {
  createDeliverySetting,
  DELIVERY_SETTING_KEYS,
  type DeliveryChannel,
  type DeliverySettingDraft,
  MESSAGE_DELIVERY_KINDS,
  validateDeliverySettingDraft,
} from "./delivery-setting-draft.js";
import { TestMessageForm } from "./test-message.js";

interface DeliveryInputProps {
  field: (typeof MESSAGE_DELIVERY_KINDS)[DeliveryChannel][string]["fields"][number];
  value: string;
  fault: string | undefined;
  onChange: (value: string) => void;
}

function DeliveryInput({
  field: { label, hint, type, isRequired, options },
  value,
  fault,
  onChange,
}: DeliveryInputProps) {
  const id = useId();
  const onInput = (event: ChangeEvent<HTMLInputElement | HTMLSelectElement>) => onChange(event.target.value);
  return (
    <div className="field">
      <label htmlFor={id}>
        {label}
        {isRequired && <span aria-hidden="true"> *</span>}
      </label>
      {options ? (
        <select id={id} aria-describedby={`${id}-fault ${id}-hint`} value={value} onChange={onInput}>
          {options.map(([option, words]) => (
            <option key={option} value={option}>
              {words}
            </option>
          ))}
        </select>
      ) : (
        <input
          id={id}
          type={type ?? "text"}
          autoComplete={type === "password" ? "new-password" : "off"}
          aria-required={isRequired ?? false}
          aria-invalid={fault !== undefined}
          aria-describedby={`${id}-fault ${id}-hint`}
          value={value}
          onChange={onInput}
        />
      )}
      <p id={`${id}-fault`} className="fault" role="alert">
        {fault}
      </p>
      <p id={`${id}-hint`} className="hint">
        {hint}
      </p>
    </div>
  );
}

function useDeliveryDraft({ api, appId, setDirty }: DeliveryProps, channel: DeliveryChannel) {
  const settings = useSettings(api, appId);
  const [kind, setKind] = useState(Object.keys(MESSAGE_DELIVERY_KINDS[channel])[0]!);
  const { values: draft, setValues: setDraft, clearSaved } = useNewResourceForm<DeliverySettingDraft>({});
  const [faults, setFaults] = useState<Record<string, string>>({});
  const [saveFault, setSaveFault] = useState<string | null>(null);
  const isDirty = Object.values(draft).some((text) => text !== "");
  useUnsavedChanges(setDirty, isDirty);
  const changeField = (name: string, value: string) => {
    setDraft((old) => ({ ...old, [name]: value }));
    setFaults(({ [name]: _, ...others }) => others);
  };
  const saveSetting = async () => {
    const foundFaults = validateDeliverySettingDraft(channel, kind, draft);
    setFaults(foundFaults);
    setSaveFault(null);
    if (Object.keys(foundFaults).length > 0) return;
    const newSaveFault = await settings.setValue(
      DELIVERY_SETTING_KEYS[channel],
      createDeliverySetting(channel, kind, draft),
    );
    setSaveFault(newSaveFault);
    if (newSaveFault === null) clearSaved(draft);
  };
  const storedDetails = settings.detailsByKey[DELIVERY_SETTING_KEYS[channel]];
  return { kind, setKind, draft, changeField, faults, saveFault, isDirty, saveSetting, storedDetails };
}

type DeliveryProps = Pick<PageProps, "api" | "appId" | "setDirty"> & { email: string; goBack: () => void };

export function DeliveryForm({ channel, ...props }: DeliveryProps & { channel: DeliveryChannel }) {
  const { api, appId, email, goBack } = props;
  const { kind, setKind, draft, changeField, faults, saveFault, isDirty, saveSetting, storedDetails } =
    useDeliveryDraft(props, channel);
  const kinds = Object.entries(MESSAGE_DELIVERY_KINDS[channel]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void saveSetting();
  };
  return (
    <article className="reader delivery" aria-label={channel === "email" ? "E-mail delivery" : "SMS delivery"}>
      <div className="row">
        <button type="button" className="link narrow-only" onClick={goBack}>
          ← Outbox
        </button>
        <h2 className="grow">{channel === "email" ? "E-mail delivery" : "SMS delivery"}</h2>
        <span className={storedDetails ? "chip live" : "chip"}>
          {storedDetails
            ? `configured ${storedDetails.updatedAt ? formatAge(storedDetails.updatedAt) : ""}`
            : "not configured"}
        </span>
      </div>
      <p className="hint">
        Stored in the protected setting <code>{DELIVERY_SETTING_KEYS[channel]}</code>. Stored values are never shown
        again: a save replaces all of them.
      </p>
      <form onSubmit={submit} noValidate>
        {kinds.length > 1 && (
          <label className="field">
            Provider
            <select value={kind} onChange={(event) => setKind(event.target.value)}>
              {kinds.map(([name, { label }]) => (
                <option key={name} value={name}>
                  {label}
                </option>
              ))}
            </select>
          </label>
        )}
        {MESSAGE_DELIVERY_KINDS[channel][kind]!.fields.map((field) => (
          <DeliveryInput
            key={field.name}
            field={field}
            value={draft[field.name] ?? ""}
            fault={faults[field.name]}
            onChange={(value) => changeField(field.name, value)}
          />
        ))}
        <p className="fault" role="alert">
          {saveFault}
        </p>
        <button type="submit" className="primary" disabled={!isDirty}>
          {storedDetails ? "Replace" : "Save"}
        </button>
      </form>
      <TestMessageForm {...{ api, appId, channel }} to={channel === "email" ? email : ""} />
    </article>
  );
}
