/**
 * Dock below the code with one open panel: run, test, call, log, publish or versions. The dock itself stores the state of the current run,
 * so that the run continues while another panel is open.
 */
import { useCallback, useEffect, useLayoutEffect, useMemo, useState } from "react";
import { findCodePositions } from "../runs/code-positions.js";
import { LogPanel } from "../runs/log-panel.js";
import type { CodeProblem, PayloadPreset } from "../shared/model.js";
import { TabPanel } from "../shared/tab-list.js";
import { type PaletteCommand, useCommandRegistration } from "../shell/commands.js";
import { mayEdit } from "../shell/rights.js";
import { CallPanel } from "./call-panel.js";
import type { ActionDraft } from "./draft.js";
import { parsePayload } from "./payload-text.js";
import { PublishPanel } from "./publish-panel.js";
import { RunPanel } from "./run-panel.js";
import { TestPanel } from "./test-panel.js";
import type { ActionEditor } from "./use-editor.js";
import { usePayloadTests } from "./use-payload-tests.js";
import { type StartedRun, useActionRunner } from "./use-run.js";
import { VersionPanel } from "./version-panel.js";
import type { WorkspaceProps } from "./workspace-props.js";

const DOCK_TABS = ["Run", "Test", "Call", "Log", "Publish", "Versions"] as const;
type DockTab = (typeof DOCK_TABS)[number];

/** Hook that starts a run at Ctrl+Enter. Handles the key before Monaco, which would insert a line break. */
function useRunShortcut(startRun: () => void): void {
  // A layout effect runs before the browser draws the page, so the shortcut always uses the state that the button shows.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.key !== "Enter") return;
      event.preventDefault();
      event.stopPropagation();
      startRun();
    };
    addEventListener("keydown", onKey, true);
    return () => removeEventListener("keydown", onKey, true);
  }, [startRun]);
}

/** Panels for people with the role reader, who cannot run or publish actions. */
const READER_TABS: readonly DockTab[] = ["Log", "Versions"];

const DOCK_ELEMENT_ID = "dock";

/** Opens a panel of the dock, scrolls to it and focuses its tab. @param shouldPressButton true to also click the panel's main button */
export function openDockPanel(name: DockTab, shouldPressButton = false): void {
  // Focuses the tab. The tab list then also selects it.
  document.querySelector<HTMLElement>(`#${DOCK_ELEMENT_ID} [data-tab="${name}"]`)?.focus({ preventScroll: true });
  // Waits for the next frame, in which the panel is rendered with its own height. Only then the scroll position is right.
  requestAnimationFrame(() => {
    const dock = document.getElementById(DOCK_ELEMENT_ID);
    dock?.scrollIntoView({ block: "start" });
    if (shouldPressButton) dock?.querySelector<HTMLElement>(".panel button.primary")?.click();
  });
}

/**
 * Returns the position in the action's code at which a run failed, with the error message. Returns null if the stack does not contain a
 * line of this code.
 */
function findErrorPosition(error: StartedRun["error"], name: string | undefined): CodeProblem | null {
  if (!error || !("stack" in error)) return null;
  const [position] = findCodePositions(error.stack, name);
  if (!position) return null;
  const { line, column } = position;
  return { message: `${error.name}: ${error.message}`, line, column, dependency: null };
}

interface DockProps extends WorkspaceProps {
  editor: ActionEditor;
  draft: ActionDraft;
  /**
   * Called with the position in the code at which the shown run failed. Called with null if there is no such position. Also called with
   * null if the code or the payload has changed since the run.
   */
  onFailure: (problem: CodeProblem | null) => void;
}

export function Dock(props: DockProps) {
  const { api, appId, actions, confirm, editor, draft } = props;
  const { savedAction, isDirty, saveDraft, reloadAction } = editor;
  const tabs = mayEdit(props.role) ? DOCK_TABS : READER_TABS;
  const [chosenTab, setTab] = useState<DockTab>(tabs[0]!);
  const tab = tabs.includes(chosenTab) ? chosenTab : tabs[0]!;
  const [payload, setPayload] = useState("{}");
  const [payloadFault, setPayloadFault] = useState<string | null>(null);
  // Code and payload of the shown run. If the current code or payload differs, the panel marks the result as outdated.
  const [runInput, setRunInput] = useState<string | null>(null);
  const runner = useActionRunner(api, appId);
  const isRunning = runner.run?.state === "running";

  const isOutdated = runInput !== null && runInput !== `${draft.code}\n${payload}`;
  const { onFailure } = props;
  const error = runner.run?.error;
  useEffect(
    () => onFailure(isOutdated ? null : findErrorPosition(error, savedAction?.name)),
    [onFailure, isOutdated, error, savedAction?.name],
  );

  const { startRun } = runner;
  const saveAndRun = useCallback(async () => {
    if (isRunning || !tabs.includes("Run")) return;
    setTab("Run");
    const parsed = parsePayload(payload);
    setPayloadFault("fault" in parsed ? parsed.fault : null);
    if ("fault" in parsed) return;
    const action = await saveDraft();
    if (!action) return;
    setRunInput(`${action.code}\n${payload}`);
    await startRun(action.id, parsed.payload);
  }, [payload, isRunning, saveDraft, startRun, tabs]);
  const payloadTests = usePayloadTests(api, appId);
  const saveAndTest = async (presets: readonly PayloadPreset[]) => {
    const action = await saveDraft();
    if (action) await payloadTests.startTests(action, presets);
  };
  const runNow = useCallback(() => void saveAndRun(), [saveAndRun]);
  useRunShortcut(runNow);
  const isStored = savedAction !== null;
  const commands = useMemo<PaletteCommand[]>(
    () => [
      { name: "Run this action", shortcut: "Ctrl Enter", run: runNow },
      ...(isStored ? tabs.map((name) => ({ name: `Show the panel ${name}`, run: () => setTab(name) })) : []),
    ],
    [runNow, isStored, tabs],
  );
  useCommandRegistration(commands);

  const liveVersion = savedAction ? actions.findLiveVersion(savedAction.id) : undefined;
  const sharedProps = { api, appId, confirm };
  const panels = {
    Run: () => (
      <RunPanel
        {...{ api, appId, savedAction, draft, isDirty, runner, payload, payloadFault, isOutdated }}
        setPayload={(text) => {
          setPayload(text);
          setPayloadFault(null);
        }}
        startRun={() => void saveAndRun()}
        allowOrigin={(origin) => editor.changeDraft({ integrationOrigins: [...draft.integrationOrigins, origin] })}
        isBlocked={editor.otherPeopleChanges.conflict !== null}
      />
    ),
    Test: () =>
      savedAction && (
        <TestPanel
          {...{ api, app: props.app, savedAction, draft, isDirty }}
          payloadTests={payloadTests}
          startTests={(presets) => void saveAndTest(presets)}
          isBlocked={editor.otherPeopleChanges.conflict !== null}
          openRunPanel={() => setTab("Run")}
        />
      ),
    Call: () =>
      savedAction && (
        <CallPanel
          {...sharedProps}
          {...{ savedAction, actions, payload }}
          versionIds={liveVersion ? [savedAction.id, liveVersion.id] : [savedAction.id]}
          fillPayload={(text) => {
            setPayload(text);
            setPayloadFault(null);
            setTab("Run");
          }}
        />
      ),
    Log: () =>
      savedAction && (
        <LogPanel
          {...sharedProps}
          actions={actions}
          versionIds={liveVersion ? [savedAction.id, liveVersion.id] : [savedAction.id]}
        />
      ),
    Publish: () =>
      savedAction && (
        <PublishPanel
          {...sharedProps}
          {...{ savedAction, isDirty, liveVersion, actions, app: props.app }}
          onAppPublished={props.reloadApps}
        />
      ),
    Versions: () =>
      savedAction && (
        <VersionPanel
          {...sharedProps}
          {...{ savedAction, isDirty }}
          onRestored={async () => {
            await Promise.all([reloadAction(draft), actions.reloadActions()]);
          }}
        />
      ),
  };
  return (
    <section id={DOCK_ELEMENT_ID} className="dock" aria-label="Run and publish">
      <TabPanel
        label="Panels"
        tabNames={tabs}
        selectedName={tab}
        selectTab={setTab}
        disabledNames={isStored ? [] : tabs.filter((name) => name !== "Run")}
        panelClass="panel"
      >
        {panels[tab]()}
      </TabPanel>
    </section>
  );
}
