/** Executes a claimed run: evaluates the code, searches the outcome for secrets, and writes it to the database. */
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { type Db, isInvalidDataError } from "../../data/database.js";
import { retryInOutage } from "../../data/outage-retry.js";
import type { EvaluationMode, PageRunOutcome, PageRunRequest, SendOutgoingRequest } from "../../engine/browser/run.js";
import type { ServiceRequestSender } from "../../engine/service-requests.js";
import { createSourcePositionMapper } from "../../engine/source-positions.js";
import { ActionError } from "../../errors.js";
import type { RunOutcome } from "../records/execution-logs.js";
import type { OutgoingRequestRecord, RunRequestSender } from "../requests/run-requests.js";
import type { ServiceMetrics } from "../watch/measures.js";
import { createRequestSpanAttributes, PageRequestSpans } from "../watch/request-spans.js";
import type { RequestTracing, TraceSpan } from "../watch/tracing.js";
import { ConsoleWriter } from "./console.js";
import {
  ACTION_DELETED_OUTCOME,
  checkResult,
  createFailedOutcome,
  createRunEndRecord,
  EMPTY_PAYLOAD,
  INTERNAL_FAILURE,
  isAbortedOutcome,
  SERVICE_STOPPED_OUTCOME,
  toOutcomeMetricLabel,
  UNSTORABLE_OUTCOME,
} from "./outcomes.js";
import type { PageScriptLoader, PreparedScripts } from "./page-scripts.js";
import type { RunRepository } from "./run-repository.js";
import type { RunSecrets, SecretStore } from "./run-secrets.js";
import type { RunCode, RunRecord } from "./run-types.js";

const RETRY_DELAY_MS = 500;
/** Maximum number of console lines about blocked requests per run, because a run can send hundreds of requests a second. */
const BLOCKED_LINES_MAX = 100;

interface Evaluation {
  outcome: RunOutcome;
  /** True if the end of the error's text is missing. */
  isCut?: boolean;
  /** Absent if the outcome contains no text from the app's code, and so needs no search for secrets. */
  secrets?: RunSecrets;
}

/** Returns a function that returns false for a URL with a secret. For this URL, it also prints the setting's key to the console. */
function createUrlCheck(
  secrets: RunSecrets,
  { print }: ConsoleWriter,
  signal: AbortSignal,
): (url: string) => Promise<boolean> {
  let blockedCount = 0;
  return async (url) => {
    const key = await retryInOutage(signal, () => secrets.findInUrl(url));
    if (key !== null && blockedCount < BLOCKED_LINES_MAX) {
      blockedCount += 1;
      const text = `A request was blocked: its URL holds the value of the setting ${key}`;
      print({ level: "error", at: Date.now(), text });
    }
    return key === null;
  };
}

/** @param mark random property name of this run: a value of `Svc.App.V3.Actions.response` has the form `{<mark>: options}` */
function toRunOutcome(ended: PageRunOutcome, signal: AbortSignal, mark: string | null): RunOutcome {
  if (!ended.ok) {
    if (ended.cause === "cancelled") return (signal.reason as RunOutcome | undefined) ?? SERVICE_STOPPED_OUTCOME;
    const { name, message, stack } = ended.error;
    return { ok: false, error: { name, message, stack }, ...(ended.cause === "timeout" && { cause: "timeout" }) };
  }
  const { data } = ended;
  const responseStart = `{${JSON.stringify(mark)}:`;
  const isResponse = mark !== null && data?.slice(0, responseStart.length).toString() === responseStart;
  return isResponse ? { ok: true, data: data!.slice(responseStart.length, -1), isResponse: true } : { ok: true, data };
}

export interface ExecutorOptions {
  db: Db;
  repository: RunRepository;
  runPage: (request: PageRunRequest) => Promise<PageRunOutcome>;
  secrets: SecretStore;
  scripts: Pick<PageScriptLoader, "prepare">;
  /** Time limit of a run in milliseconds. An action can have a shorter limit. */
  timeoutMs: number;
  measures: Pick<ServiceMetrics, "countEndedRun" | "countRequest">;
  tracing: RequestTracing;
  apiUrl: string;
  serviceRequests: ServiceRequestSender | null;
  requests: RunRequestSender;
  log: Logger;
}

/** Executes one run, and collects the facts of its row, its log entry and its OpenTelemetry spans (no paths, payloads or messages). */
export class RunExecution {
  private readonly span: TraceSpan;
  private readonly hosts = new Set<string>();
  private requests: readonly OutgoingRequestRecord[] = [];
  private mode: EvaluationMode | null = null;
  /** Time (`performance.now()`) at which the code ended; null before. An outage of the database afterwards is not part of the duration. */
  private codeEndedAt: number | null = null;

  /** @param signal its abort reason is the run's outcome: that of a cancelled run, LOST_OUTCOME or SERVICE_STOPPED_OUTCOME */
  constructor(
    private readonly options: ExecutorOptions,
    private readonly run: RunRecord,
    private readonly holder: string,
    private readonly signal: AbortSignal,
  ) {
    const { id, appId, actionId, trigger, traceparent = null } = run;
    const values = { "svc.run_id": id, "svc.app_id": appId, "svc.action_id": actionId, "svc.trigger": trigger };
    this.span = options.tracing.beginSpan("run", "internal", traceparent, values);
  }

  /** @throws if the outcome cannot be written before this process stops or loses the run to another process */
  async execute(): Promise<RunOutcome> {
    const startedAt = performance.now();
    const evaluation = await this.evaluateCode().catch((error: unknown) => this.toFailedEvaluation(error));
    const durationMs = (this.codeEndedAt ?? performance.now()) - startedAt;
    let { outcome } = evaluation;
    try {
      outcome = await this.finish(evaluation, durationMs);
      return outcome;
    } finally {
      const { appId, trigger } = this.run;
      const ended = { mode: this.mode ?? ("none" as const), outcome: toOutcomeMetricLabel(outcome) };
      this.options.measures.countEndedRun({ appId, trigger, ...ended, durationMs });
      this.span.setAttributes({ "svc.outcome": ended.outcome, "svc.mode": ended.mode });
      this.span.endSpan(ended.outcome !== "completed");
    }
  }

  private async evaluateCode(): Promise<Evaluation> {
    const { run, options, signal } = this;
    const { code: action } = run;
    const secrets = await retryInOutage(signal, () => options.secrets.beginRun(run.appId, run.secretsVersion));
    if (!action) return { outcome: ACTION_DELETED_OUTCOME };
    const limitMs = Math.min(options.timeoutMs, action.timeoutMs ?? options.timeoutMs);
    const scripts = await retryInOutage(signal, () => options.scripts.prepare(run, action, limitMs));
    const writer = new ConsoleWriter({ ...options, runId: run.id, mask: (lines) => secrets.mask(lines) });
    const mapPositions = createSourcePositionMapper(`${action.name}.js`, action.map ?? action.source?.map ?? null);
    const pageRequest: PageRunRequest = {
      ...this.buildPageRun(action, secrets, scripts, writer),
      timeoutMs: limitMs,
      onConsole: (line) => writer.print({ ...line, text: mapPositions(line.text) }),
    };
    let ended: PageRunOutcome;
    try {
      ended = await this.runPage(pageRequest);
    } finally {
      this.codeEndedAt = performance.now();
      const steps = await Promise.allSettled([scripts.revokeToken?.(), retryInOutage(signal, writer.flush)]);
      for (const { reason: err } of steps.filter(({ status }) => status === "rejected") as PromiseRejectedResult[])
        options.log.warn({ err, runId: run.id }, "a run could not revoke its token or store its console");
    }
    if (!ended.ok) ended.error.stack = mapPositions(ended.error.stack);
    const outcome = toRunOutcome(ended, signal, scripts.responseMark);
    // The outcome of an aborted run contains no text from the app's code.
    if (!ended.ok && ended.cause === "cancelled") return { outcome };
    return { outcome, isCut: !ended.ok && ended.error.cut === true, secrets };
  }

  private async runPage(request: PageRunRequest): Promise<PageRunOutcome> {
    const { tracing, apiUrl, runPage } = this.options;
    if (!tracing.isOn) return runPage(request);
    const browserSpan = tracing.beginSpan("browser", "internal", this.span.traceparent);
    const spans = new PageRequestSpans(tracing, browserSpan, new URL(apiUrl).origin);
    const outcome = await runPage({ mayRequest: () => true, ...request, onRequest: (sent) => spans.start(sent) });
    spans.endAll();
    browserSpan.endSpan(!outcome.ok);
    return outcome;
  }

  private buildPageRun(
    action: RunCode,
    secrets: RunSecrets,
    scripts: PreparedScripts,
    writer: ConsoleWriter,
  ): Omit<PageRunRequest, "timeoutMs" | "onConsole"> {
    const { run, signal } = this;
    const { serviceRequests } = this.options;
    const origin = `https://app-${run.appId}.actions.internal`;
    return {
      isolationKey: `${run.appId}:${run.copy}`,
      origin,
      source: action.code,
      sourceName: `${action.name}.js`,
      packages: scripts.packages,
      payload: run.payload,
      settings: secrets.getContextSettings(action.environment),
      signal,
      onMode: (mode) => {
        this.mode = mode;
      },
      onHost: (host) => this.hosts.add(host),
      // The check of each URL takes time. A run gets it only if it has secrets, or a token with which it can read settings.
      ...((secrets.hasSecrets || scripts.revokeToken) && { mayRequest: createUrlCheck(secrets, writer, signal) }),
      ...(scripts.revokeToken &&
        serviceRequests !== null && {
          service: {
            base: serviceRequests.base,
            send: (request, requestSignal) => serviceRequests.send(request, origin, requestSignal),
          },
        }),
      ...(scripts.sendsRequests && { outgoing: this.beginOutgoingRequests(action, secrets, writer) }),
    };
  }

  private beginOutgoingRequests(action: RunCode, secrets: RunSecrets, writer: ConsoleWriter): SendOutgoingRequest {
    const { send, records } = this.options.requests.beginRun({
      appId: this.run.appId,
      environment: action.environment,
      origins: action.integrationOrigins ?? [],
      findInUrl: (url) => secrets.findInUrl(url),
      printLine: writer.print,
      onHostContacted: (host) => this.hosts.add(host),
      startRequestSpan: (origin, method) => {
        const { tracing, measures } = this.options;
        const values = createRequestSpanAttributes(new URL(origin), method);
        const span = tracing.beginSpan("request", "client", this.span.traceparent, values);
        return (facts) => {
          measures.countRequest(facts);
          const { status, sentBytes, receivedBytes, code } = facts;
          span.setAttributes({ "http.request.body.size": sentBytes, "http.response.body.size": receivedBytes });
          if (status !== null) span.setAttributes({ "http.response.status_code": status });
          if (code !== null) span.setAttributes({ "error.type": code });
          span.endSpan(code !== null || status === null || status >= 400);
        };
      },
    });
    this.requests = records;
    return send;
  }

  private toFailedEvaluation(error: unknown): Evaluation {
    if (error instanceof ActionError) return { outcome: createFailedOutcome("Error", error.message) };
    this.options.log.error({ err: error, runId: this.run.id }, "a run could not be executed");
    return { outcome: INTERNAL_FAILURE };
  }

  private async scanAndFinish(evaluation: Evaluation, durationMs: number): Promise<RunOutcome> {
    const { run, holder, options } = this;
    const { secrets, isCut = false } = evaluation;
    const checkedOutcome = await checkResult(evaluation.outcome);
    const scan = await secrets?.scanOutcome(checkedOutcome, isCut, run.payload);
    const outcome = scan?.outcome ?? checkedOutcome;
    let payload: string | null = EMPTY_PAYLOAD;
    if (scan) ({ payload } = scan);
    // An unstorable outcome gets no payload, because the payload may contain the value that the database has rejected.
    else if (outcome !== UNSTORABLE_OUTCOME) payload = await options.secrets.maskPayloadOfRun(run);
    const endRecord = createRunEndRecord(run, holder, outcome, durationMs, payload);
    const requests = this.requests.length === 0 ? null : JSON.stringify(this.requests);
    const facts = { hosts: [...this.hosts], sandbox: this.mode, requests };
    const secretsVersion = scan?.version ?? null;
    if (await options.repository.finish({ ...endRecord, ...facts, secretsVersion })) return outcome;
    if (scan && (await secrets?.isOutdated(scan.version))) return this.scanAndFinish(evaluation, durationMs);
    options.log.warn({ runId: run.id }, "the outcome of a run was discarded, because the run had already ended");
    return outcome;
  }

  /** Writes the outcome; retries after a database error. Writes a failure if PostgreSQL cannot store the outcome, or its check fails. */
  private async finish(result: Evaluation, durationMs: number): Promise<RunOutcome> {
    const { db, log } = this.options;
    for (let next = result; ; ) {
      try {
        return await this.scanAndFinish(next, durationMs);
      } catch (error) {
        if (error instanceof ActionError) {
          next = this.toFailedEvaluation(error);
          continue;
        }
        log.warn({ err: error, runId: this.run.id }, "the end of a run could not be written");
        if (!db.isInitialized || isAbortedOutcome(this.signal.reason)) throw error;
        if (isInvalidDataError(error) && next.outcome !== UNSTORABLE_OUTCOME) {
          next = { outcome: UNSTORABLE_OUTCOME };
          // A request may contain the value that the database has rejected.
          this.requests = [];
        } else await delay(RETRY_DELAY_MS);
      }
    }
  }
}
