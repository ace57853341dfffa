/**
 * Hook that runs an action's draft with presets (saved payloads), one after the other. It stores the last result of each
 * preset.
 */
import { useCallback, useEffect, useRef, useState } from "react";
import { RunAction } from "../documents.js";
import { cancelRun } from "../runs/cancel-run.js";
import { type ApiClient, asApiError } from "../shared/api.js";
import { formatJson } from "../shared/format.js";
import type { Action, PayloadPreset } from "../shared/model.js";
import { retryAfterRateLimit } from "../shared/rate-limit-retry.js";
import { waitForRunEnd } from "./use-run.js";

export interface PayloadTest {
  state: "running" | "completed" | "failed" | "cancelled";
  /** ID of the run; null until the service has accepted the request. */
  runId: number | null;
  /** First characters of the result or of the error message; "" until the run has ended. */
  outcomeText: string;
  /** Duration of the run in milliseconds; null until the run has ended. */
  durationMs: number | null;
  /** True if the result or error message differs from that of the preset's previous test. False if one of the two tests was cancelled. */
  isChanged: boolean;
  /** Code and payload of the run. If the current code or payload differs, the panel marks the result as outdated. */
  testedInput: string;
}

export interface PayloadTests {
  /** Last test of each preset, by the preset's name. */
  tests: ReadonlyMap<string, PayloadTest>;
  isBusy: boolean;
  /** Error message of a request that failed; null if none failed. After a failed request, the remaining presets are not run. */
  fault: string | null;
  startTests(action: Action, presets: readonly PayloadPreset[]): Promise<void>;
  /** Cancels the current run and does not run the remaining presets. */
  stopTests(): void;
}

/** Maximum number of characters of a result that the page stores and compares. */
const OUTCOME_MAX_CHARACTERS = 20_000;

export const createTestedInputKey = (code: string, { payload }: PayloadPreset): string =>
  `${code}\n${JSON.stringify(payload)}`;

type TestOutcome = Pick<PayloadTest, "state" | "outcomeText" | "durationMs">;

async function waitForOutcome(api: ApiClient, appId: number, runId: number, signal: AbortSignal): Promise<TestOutcome> {
  const {
    state = "cancelled",
    result,
    error,
    durationMs = null,
  } = (await waitForRunEnd(api, appId, runId, signal)) ?? {};
  const message = error && ("name" in error ? `${error.name}: ${error.message}` : error.message);
  const text = message ?? (state === "completed" ? formatJson(result) : "");
  return { state, outcomeText: text.slice(0, OUTCOME_MAX_CHARACTERS), durationMs };
}

const RUNNING_TEST = { state: "running", runId: null, outcomeText: "", durationMs: null, isChanged: false } as const;

/** Resolves after this number of seconds, or immediately when `signal` is aborted. */
const waitSeconds = (seconds: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    setTimeout(resolve, seconds * 1_000);
    signal.addEventListener("abort", () => resolve());
  });

const hasEnded = ({ state }: TestOutcome): boolean => state === "completed" || state === "failed";

export function usePayloadTests(api: ApiClient, appId: number): PayloadTests {
  const [tests, setTests] = useState<ReadonlyMap<string, PayloadTest>>(new Map());
  const latestTests = useRef(new Map<string, PayloadTest>());
  const [isBusy, setBusy] = useState(false);
  const [fault, setFault] = useState<string | null>(null);
  const currentAbort = useRef(new AbortController());
  useEffect(() => () => currentAbort.current.abort(), []);

  const storeTest = useCallback((name: string, test: PayloadTest) => {
    latestTests.current.set(name, test);
    setTests(new Map(latestTests.current));
  }, []);

  const runPreset = useCallback(
    async ({ id, code }: Action, preset: PayloadPreset, signal: AbortSignal) => {
      const { name, payload } = preset;
      const previousTest = latestTests.current.get(name);
      let test: PayloadTest = { ...RUNNING_TEST, testedInput: createTestedInputKey(code, preset) };
      storeTest(name, test);
      // Ignores outcomes of this test after a newer test of the same preset has started.
      const updateTest = (next: PayloadTest) => {
        if (latestTests.current.get(name) !== test) return;
        test = next;
        storeTest(name, test);
      };
      const endTest = (outcome: TestOutcome) => {
        const isChanged =
          previousTest !== undefined &&
          hasEnded(previousTest) &&
          hasEnded(outcome) &&
          previousTest.outcomeText !== outcome.outcomeText;
        updateTest({ ...test, ...outcome, isChanged });
      };
      try {
        const sendRun = async () =>
          signal.aborted ? null : api.request(RunAction, { appId, id, payload, copy: "master" });
        const wait = (seconds: number) => waitSeconds(seconds, signal);
        const acceptedRun = await retryAfterRateLimit(sendRun, { toRequestFailure: asApiError, waitSeconds: wait });
        if (acceptedRun === null) return endTest({ state: "cancelled", outcomeText: "", durationMs: null });
        const { runId } = acceptedRun.run;
        updateTest({ ...test, runId });
        const cancelTestRun = () =>
          void cancelRun(api, appId, runId).catch((error: unknown) => setFault(asApiError(error).message));
        if (signal.aborted) cancelTestRun();
        else signal.addEventListener("abort", cancelTestRun);
        endTest(await waitForOutcome(api, appId, runId, signal));
        signal.removeEventListener("abort", cancelTestRun);
      } catch (error) {
        // The page's request has failed, not the action. So this test has no result, and the caller shows the error.
        endTest({ state: "cancelled", outcomeText: "", durationMs: null });
        if (!signal.aborted) throw error;
      }
    },
    [api, appId, storeTest],
  );

  const startTests = useCallback(
    async (action: Action, presets: readonly PayloadPreset[]) => {
      currentAbort.current.abort();
      currentAbort.current = new AbortController();
      const { signal } = currentAbort.current;
      setBusy(true);
      setFault(null);
      try {
        for (const preset of presets) {
          if (signal.aborted) return;
          await runPreset(action, preset, signal);
        }
      } catch (error) {
        setFault(asApiError(error).message);
      }
      if (!signal.aborted) setBusy(false);
    },
    [runPreset],
  );
  const stopTests = useCallback(() => {
    currentAbort.current.abort();
    setBusy(false);
  }, []);
  return { tests, isBusy, fault, startTests, stopTests };
}
