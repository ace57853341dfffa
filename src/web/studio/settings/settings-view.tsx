/**
 * Page of the app's settings, grouped by tier. It stores which rows have unsaved changes, so that Studio asks before the person leaves the
 * page.
 */
import { useCallback, useEffect, useLayoutEffect, useState } from "react";
import { usePersonNames } from "../people/people.js";
import type { PageProps } from "../shell/page-props.js";
import { mayEdit } from "../shell/rights.js";
import { NEW_ROW_NAME, NewSetting } from "./new-setting.js";
import { SettingLine } from "./setting-line.js";
import { getTier, type Tier } from "./setting-value.js";
import { PublicSettings } from "./settings-read.js";
import { SettingsGauge } from "./settings-use.js";
import { useSettings } from "./use-settings.js";

const TIER_SECTIONS: [tier: Tier, title: string, text: string][] = [
  ["public", "Public", "Everyone can read these. The pages of the app have them as window.ENV.appSettings."],
  ["private", "Private _", "Only editors and server actions can read these."],
  ["protected", "Protected __", "Only server actions can read these. You can replace a value but never read it back."],
];

export function SettingsView(props: PageProps) {
  return mayEdit(props.role) ? <AllSettings {...props} /> : <PublicSettings {...props} />;
}

function AllSettings({ api, appId, confirm, setDirty, place }: PageProps) {
  const settings = useSettings(api, appId);
  const findPersonName = usePersonNames(appId);
  const { values, details, updatedAt, fault } = settings;
  /** Keys of the settings whose rows have unsaved changes. */
  const [edited, setEdited] = useState<readonly string[]>([]);
  const onDirty = useCallback(
    (name: string, dirty: boolean) =>
      setEdited((old) => {
        if (old.includes(name) === dirty) return old;
        return dirty ? [...old, name] : old.filter((other) => other !== name);
      }),
    [],
  );
  const hasEdits = edited.length > 0;
  useLayoutEffect(() => setDirty(hasEdits), [hasEdits, setDirty]);

  const isLoaded = values !== null;
  const shownKey = place.query["key"];
  useEffect(() => {
    // If the URL names a setting, its row is scrolled into view and focused.
    const rows = isLoaded && shownKey ? [...document.querySelectorAll<HTMLElement>(".setting")] : [];
    const row = rows.find(({ dataset }) => dataset["key"] === shownKey);
    row?.scrollIntoView({ block: "center" });
    row?.querySelector<HTMLElement>("textarea, input, button")?.focus({ preventScroll: true });
  }, [shownKey, isLoaded]);

  const secrets = Object.keys(details).filter((key) => getTier(key) === "protected");
  // If another person deletes a setting that has unsaved changes here, its row stays on the screen.
  const editedKeys = edited.filter((name) => name !== NEW_ROW_NAME);
  const keys = [...new Set([...Object.keys(values ?? {}), ...secrets, ...editedKeys])].sort();
  return (
    <div className="settings">
      <p className="fault" role="alert">
        {fault}
      </p>
      <section aria-label="New setting">
        <h2>New setting</h2>
        <NewSetting {...{ settings, confirm, onDirty }} />
        <SettingsGauge appId={appId} updatedAt={updatedAt} />
      </section>
      {TIER_SECTIONS.map(([tier, title, text]) => {
        const tierKeys = keys.filter((key) => getTier(key) === tier);
        return (
          <section key={tier} data-tier={tier} aria-label={title}>
            <h2>
              {title} <small>{tierKeys.length}</small>
            </h2>
            <p className="hint">{text}</p>
            <ul>
              {tierKeys.map((key) => (
                <SettingLine
                  key={key}
                  name={key}
                  value={values?.[key]}
                  details={details[key]}
                  {...{ appId, settings, confirm, onDirty, findPersonName }}
                />
              ))}
            </ul>
            {values && tierKeys.length === 0 && <p className="empty hint">None yet.</p>}
          </section>
        );
      })}
    </div>
  );
}
