/**
 * Page of the app's settings, grouped by tier. It tracks which rows have unsaved changes, so that Studio asks before the person leaves
 * the page.
 */
import { useCallback, useEffect, useRef, useState } from "react";
import { usePersonNames } from "../people/people.js";
import { useUnsavedChanges } from "../shared/use-unsaved-changes.js";
import type { PageProps } from "../shell/page-props.js";
import { mayEdit } from "../shell/rights.js";
import { NEW_ROW_NAME, NewSettingForm } from "./new-setting.js";
import { SettingLine, type SettingLineProps } from "./setting-line.js";
import { getSettingTier, type SettingTier } from "./setting-value.js";
import { PublicSettingsView } from "./settings-read.js";
import { SettingsGauge } from "./settings-use.js";
import { useSettings } from "./use-settings.js";

const TIER_SECTIONS: [tier: SettingTier, title: string, text: string][] = [
  ["public", "Public", "Everyone can read these. The pages of the app have them as window.ENV.appSettings."],
  ["private", "Private _", "Only editors, API tokens and server actions can read these."],
  ["protected", "Protected __", "Only server actions can read these. You can replace a value but never read it back."],
];

export function SettingsView(props: PageProps) {
  return mayEdit(props.role) ? <AllSettings {...props} /> : <PublicSettingsView {...props} />;
}

interface TierSectionProps {
  tier: SettingTier;
  texts: [title: string, text: string];
  /** Keys of the tier's settings. */
  settingKeys: readonly string[];
  lineProps: Pick<SettingLineProps, "appId" | "settings" | "confirm" | "onDirtyChange" | "findPersonName">;
}

/** Settings of one tier. After a setting was deleted, the heading receives the focus, because the row that had it is gone. */
function TierSection({ tier, texts: [title, text], settingKeys, lineProps }: TierSectionProps) {
  const { valuesByKey, detailsByKey } = lineProps.settings;
  const heading = useRef<HTMLHeadingElement>(null);
  const [removedKey, setRemovedKey] = useState<string | null>(null);
  const onRemoved = (name: string) => {
    setRemovedKey(name);
    heading.current?.focus();
  };
  return (
    <section data-tier={tier} aria-label={title}>
      <h2 ref={heading} tabIndex={-1}>
        {title} <small>{settingKeys.length}</small>
      </h2>
      <p className="hint">{text}</p>
      <p className="saved" role="status">
        {removedKey !== null && !settingKeys.includes(removedKey) && `Deleted ${removedKey}.`}
      </p>
      <ul>
        {settingKeys.map((key) => (
          <SettingLine
            key={key}
            settingKey={key}
            value={valuesByKey?.[key]}
            settingDetails={detailsByKey[key]}
            {...lineProps}
            onSettingRemoved={onRemoved}
          />
        ))}
      </ul>
      {valuesByKey && settingKeys.length === 0 && <p className="empty hint">None yet.</p>}
    </section>
  );
}

function AllSettings({ api, appId, confirm, setDirty, route }: PageProps) {
  const settings = useSettings(api, appId);
  const findPersonName = usePersonNames(appId);
  const { valuesByKey, detailsByKey, updatedAt, fault } = settings;
  /** Keys of the settings whose rows have unsaved changes, and NEW_ROW_NAME if the form for a new setting has some. */
  const [unsavedRowNames, setUnsavedRowNames] = useState<readonly string[]>([]);
  const onDirtyChange = useCallback(
    (name: string, dirty: boolean) =>
      setUnsavedRowNames((old) => {
        if (old.includes(name) === dirty) return old;
        return dirty ? [...old, name] : old.filter((other) => other !== name);
      }),
    [],
  );
  const hasEdits = unsavedRowNames.length > 0;
  useUnsavedChanges(setDirty, hasEdits);

  const isLoaded = valuesByKey !== null;
  const shownKey = route.query["key"];
  useEffect(() => {
    // If the URL names a setting, scrolls to the setting's row and focuses it.
    const rows = isLoaded && shownKey ? [...document.querySelectorAll<HTMLElement>(".setting")] : [];
    const row = rows.find(({ dataset }) => dataset["key"] === shownKey);
    row?.scrollIntoView({ block: "center" });
    row?.querySelector<HTMLElement>("textarea, input, button")?.focus({ preventScroll: true });
  }, [shownKey, isLoaded]);

  const secretKeys = Object.keys(detailsByKey).filter((key) => getSettingTier(key) === "protected");
  // Includes settings that another person has deleted, if their rows have unsaved changes in this page.
  const editedKeys = unsavedRowNames.filter((name) => name !== NEW_ROW_NAME);
  const keys = [...new Set([...Object.keys(valuesByKey ?? {}), ...secretKeys, ...editedKeys])].sort();
  return (
    <div className="settings">
      <p className="fault" role="alert">
        {fault}
      </p>
      <section aria-label="New setting">
        <h2>New setting</h2>
        <NewSettingForm {...{ settings, confirm, onDirtyChange }} />
        <SettingsGauge appId={appId} updatedAt={updatedAt} />
      </section>
      {TIER_SECTIONS.map(([tier, ...texts]) => (
        <TierSection
          key={tier}
          {...{ tier, texts }}
          settingKeys={keys.filter((key) => getSettingTier(key) === tier)}
          lineProps={{ appId, settings, confirm, onDirtyChange, findPersonName }}
        />
      ))}
    </div>
  );
}
