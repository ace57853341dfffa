/**
 * Panel that runs the draft with each of its presets (saved payloads), and shows how to run test files from the command
 * line.
 */
import { resolveServiceUrl } from "../../service-address.js";
import type { ApiClient } from "../shared/api.js";
import { formatCount, formatDuration } from "../shared/format.js";
import type { Action, App, PayloadPreset } from "../shared/model.js";
import { createHref } from "../shell/studio-route.js";
import type { ActionDraft } from "./draft.js";
import { findRunObstacle } from "./run-panel.js";
import { createTestedInputKey, type PayloadTest, type PayloadTests } from "./use-payload-tests.js";
import { usePayloadPresets } from "./use-presets.js";

const EXCERPT_MAX_CHARACTERS = 300;

interface TestPanelProps {
  api: ApiClient;
  app: App;
  savedAction: Action;
  draft: ActionDraft;
  isDirty: boolean;
  payloadTests: PayloadTests;
  /** Saves the draft if it has changed, and runs the draft with these presets. */
  startTests: (presets: readonly PayloadPreset[]) => void;
  /**
   * True if another person has deleted the action, or has saved it while this page had unsaved changes. The page can save
   * and run the action again after the user of the page has chosen how to continue.
   */
  isBlocked: boolean;
  /** Opens the Run panel, where the person can write a payload and save it as a preset. */
  openRunPanel: () => void;
}

function TestOutcome({
  test,
  isOutdated,
  appId,
}: {
  test: PayloadTest | undefined;
  isOutdated: boolean;
  appId: number;
}) {
  if (!test) return <span className="hint">not run yet</span>;
  const { state, runId, durationMs, isChanged } = test;
  return (
    <span className="row">
      <span className={`state ${state}`}>{state}</span>
      {durationMs !== null && <span className="hint">after {formatDuration(durationMs)}</span>}
      {runId !== null && <a href={createHref({ appId, view: "runs", item: String(runId) })}>run {runId}</a>}
      {isChanged && <span className="chip behind">another outcome than before</span>}
      {isOutdated && <span className="chip behind">before your last change</span>}
    </span>
  );
}

interface PresetTestsProps extends Omit<TestPanelProps, "api" | "writePayload"> {
  presets: readonly PayloadPreset[];
  isReady: boolean;
}

function PresetTests({ app, draft, payloadTests, presets, startTests, isReady }: PresetTestsProps) {
  return (
    <ul className="payload-tests" aria-label="Sample payloads">
      {presets.map((preset) => {
        const { name, payload } = preset;
        const test = payloadTests.tests.get(name);
        const isOld = test !== undefined && test.testedInput !== createTestedInputKey(draft.code, preset);
        return (
          <li key={name}>
            <b>{name}</b>
            <TestOutcome test={test} isOutdated={isOld} appId={app.id} />
            <button
              type="button"
              className="small"
              aria-label={`Run with ${name}`}
              disabled={!isReady}
              onClick={() => startTests([preset])}
            >
              Run
            </button>
            <code className="payload-excerpt">{JSON.stringify(payload).slice(0, EXCERPT_MAX_CHARACTERS)}</code>
            {test && test.outcomeText !== "" && (
              <pre className={test.state === "failed" ? "result failed" : "result"}>
                {test.outcomeText.slice(0, EXCERPT_MAX_CHARACTERS)}
                {test.outcomeText.length > EXCERPT_MAX_CHARACTERS && " …"}
              </pre>
            )}
          </li>
        );
      })}
    </ul>
  );
}

function summarizeTests(tests: PayloadTests["tests"], presets: readonly PayloadPreset[]): string {
  const states = presets.flatMap(({ name }) => tests.get(name)?.state ?? []);
  const count = (state: PayloadTest["state"]) => states.filter((testState) => testState === state).length;
  const parts = (["completed", "failed", "running"] as const)
    .map((state) => [count(state), state] as const)
    .filter(([number]) => number > 0)
    .map(([number, state]) => `${number} ${state}`);
  return [formatCount(presets.length, "sample payload", "sample payloads"), ...parts].join(", ");
}

function TestFilesHint({ app, name }: { app: App; name: string }) {
  const docs = resolveServiceUrl("/docs/reference/command-line").href;
  return (
    <section aria-label="Tests in files">
      <h3>Tests in files</h3>
      {app.requiresTests && (
        <p className="notice">
          This app publishes actions only after their tests pass: <code>svc publish --tested</code>
        </p>
      )}
      <p>
        Tests that check results are files in the project's folder, such as <code>actions/{name}/action.test.js</code>.
        They run in a temporary app with empty data sources, from your computer or from CI, not from Studio.
      </p>
      <pre className="result">{`npx svc pull\nnpx svc test ${/^[\w-]+$/.test(name) ? name : JSON.stringify(name)}`}</pre>
      <p>
        <a href={`${docs}#write-a-test`} target="_blank" rel="noreferrer">
          Write a test
        </a>
      </p>
    </section>
  );
}

export function TestPanel(props: TestPanelProps) {
  const { app, savedAction, draft, isDirty, payloadTests, startTests, isBlocked, openRunPanel } = props;
  const { presets, fault } = usePayloadPresets(app.id, savedAction.id);
  const obstacleText = findRunObstacle(draft);
  const isReady = !isBlocked && !payloadTests.isBusy && obstacleText === null;
  const isEmpty = presets?.length === 0;
  return (
    <div className="test-panel">
      <section aria-label="Runs with sample payloads">
        <h3>Sample payloads</h3>
        {isEmpty ? (
          <div className="empty-state">
            <p>
              <b>No sample payloads yet</b>
            </p>
            <p className="hint">
              Write a payload in the panel Run and save it under a name. This panel runs the draft with all of them.
            </p>
            <button type="button" onClick={openRunPanel}>
              Write a payload
            </button>
          </div>
        ) : (
          <div className="row">
            {payloadTests.isBusy ? (
              <button type="button" onClick={payloadTests.stopTests}>
                Stop
              </button>
            ) : (
              <button
                type="button"
                className="primary"
                disabled={!isReady || presets === null}
                onClick={() => startTests(presets!)}
              >
                {isDirty ? "Save and run all" : "Run all"}
              </button>
            )}
            <span className="hint" role="status">
              {presets && summarizeTests(payloadTests.tests, presets)}
            </span>
          </div>
        )}
        {obstacleText && <p className="hint">{obstacleText}</p>}
        <p className="fault" role="alert">
          {fault ?? payloadTests.fault}
        </p>
        {presets && <PresetTests {...props} presets={presets} isReady={isReady} />}
      </section>
      <TestFilesHint app={app} name={savedAction.name} />
    </div>
  );
}
