/**
 * Implements `Svc.AI` for server actions. Sends requests to the AI provider in the app's setting `__ai`, counts them toward the daily
 * limits of this setting, and logs them. The action passes options and receives the answer, but never the provider's key.
 */
import { LRUCache } from "lru-cache";
import type { Logger } from "pino";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { retryInOutage, writeOnceInOutage } from "../../data/outage-retry.js";
import {
  OutgoingError,
  type OutgoingRequestSender,
  type OutgoingResponse,
  RunRequestBudget,
} from "../../engine/outgoing.js";
import type { SecretScanner, SecretScannerCache } from "../../engine/secret-scan.js";
import { AI_TIMEOUT_MS } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import type { AiAnswer, AiProviderRequest, AiTokenUsage } from "../../rules/ai/answer.js";
import { ANTHROPIC_API } from "../../rules/ai/anthropic.js";
import { AiError, type AiErrorCode } from "../../rules/ai/failure.js";
import { OPENAI_API } from "../../rules/ai/openai.js";
import { type AiCallKind, type AiOptions, parseAiOptions } from "../../rules/ai/options.js";
import { getValueAtPath } from "../../rules/ai/provider-json.js";
import { AI_SETTING_KEY, type AiSetting, parseAiSetting, selectAiModel } from "../../rules/ai/setting.js";
import { normalizeOrigin } from "../../rules/integration-origins.js";
import { findSecretsInSettingValue } from "../../rules/secrets.js";
import type { LogEventStore } from "../records/log-events.js";
import type { Settings } from "../settings/settings.js";
import { StreamedCompletionReader } from "./completion-parts.js";
import { AiUsageRecorder } from "./usage.js";

/**
 * Reply to a request that the package svc-ai sends: the value that the action receives, or the error with which the action's promise
 * rejects. The last line of a streamed response is an AiReply too.
 */
export type AiReply = { answer: AiAnswer } | { failure: { code: AiErrorCode; message: string } };

export interface AiRequest {
  appId: number;
  call: AiCallKind;
  options: unknown;
  disconnectSignal?: (() => AbortSignal) | undefined;
  /** Called with each further part of the text of a streamed completion. */
  onTextPart?: (text: string) => Promise<void>;
}

const EVENT_TYPE_BY_CALL: Record<AiCallKind, string> = {
  completions: "ai.completions",
  embeddings: "ai.embeddings",
  image: "ai.image",
  transcribe: "ai.audio",
};

const PROVIDER_APIS = { openai: OPENAI_API, anthropic: ANTHROPIC_API };

/** Maximum number of runs whose AI requests and bytes are counted at the same time, for the limits per run. */
const MAX_COUNTED_RUNS = 2_000;
/** Time in milliseconds after a run's last AI request for which its counts stay in memory. */
const RUN_COUNTS_TTL_MS = 10 * 60 * 1000;

/** If the database is unavailable after the provider has answered, a call retries for this time, because the answer is already paid for. */
const OUTAGE_RETRY_MS = 5_000;

const CHARACTERS_PER_TOKEN = 4;
const ASSUMED_ANSWER_TOKENS = 1_024;
/** Matches the name of a provider's error. The action only gets this name: the provider's error message could repeat the request. */
const ERROR_NAME_PATTERN = /^[a-z][a-z0-9_]{0,60}$/;

/** Selects the environment of a run's action. Only server actions may use the AI provider, whose key is in a protected setting. */
const SELECT_RUN_ENVIRONMENT = `
  SELECT action.environment FROM run JOIN action ON action.id = run.action_id WHERE run.id = $1 AND run.app_id = $2`;

function estimateInputTokens(options: AiOptions): number {
  if (options.call === "image" || options.call === "transcribe") return 0;
  const texts = options.call === "embeddings" ? options.input : options.messages.map(({ content }) => content);
  const characters = texts.reduce((sum, text) => sum + text.length, 0);
  return Math.ceil(characters / CHARACTERS_PER_TOKEN);
}

function estimateTotalTokens(options: AiOptions): number {
  return (
    estimateInputTokens(options) + (options.call === "completions" ? (options.maxTokens ?? ASSUMED_ANSWER_TOKENS) : 0)
  );
}

interface ModelRequest {
  appId: number;
  runId: number;
  setting: AiSetting;
  model: string;
  request: AiProviderRequest;
  signal: AbortSignal;
}

const readTokenUsage = (answer: AiAnswer): AiTokenUsage | null => ("usage" in answer ? answer.usage : null);

/** Returns the number of tokens that count toward the daily limit: those that the provider reports, otherwise `estimatedTokens`. */
function countUsedTokens(answer: AiAnswer, estimatedTokens: number): number {
  const { inputTokens = 0, outputTokens = 0 } = readTokenUsage(answer) ?? {};
  return inputTokens + outputTokens || estimatedTokens;
}

/** Returns the texts of a call for its log event. They are logged only if the app's setting `__ai` has `logTexts`. */
function collectLoggedTexts(options: AiOptions, answer: AiAnswer): object {
  if (options.call === "completions") {
    return { messages: options.messages, answer: "message" in answer ? answer.message.content : "" };
  }
  if (options.call === "embeddings") return { input: options.input };
  if (options.call === "image") return { prompt: options.prompt };
  return { answer: "text" in answer ? answer.text : "" };
}

/** Returns an error whose message contains the name of the provider's error. `mask` masks secrets in this name. */
async function createProviderError(
  url: URL,
  response: OutgoingResponse,
  mask: (text: string) => Promise<string>,
): Promise<AiError> {
  let name: unknown;
  try {
    const body: unknown = JSON.parse(response.body.toString("utf8"));
    name = [getValueAtPath(body, "error", "type"), getValueAtPath(body, "error", "code")].find(
      (element) => typeof element === "string" && ERROR_NAME_PATTERN.test(element),
    );
  } catch {
    // Ignores a body that is not JSON: the error message then contains only the status.
  }
  const nameText = typeof name === "string" ? ` (${await mask(name)})` : "";
  const text = `${url.origin}${url.pathname} answered ${response.status}${nameText}`;
  return new AiError(response.status === 429 ? "LIMIT" : "TRANSPORT", text);
}

interface AiDependencies {
  db: Db;
  log: Logger;
  settings: Settings;
  scannerCache: SecretScannerCache;
  requestSender: OutgoingRequestSender;
  logEvents: LogEventStore;
  /** True if the URL of a provider may use http instead of https (ALLOW_PRIVATE_NETWORK). */
  allowHttp: boolean;
}

async function maskAnswer(scan: SecretScanner, answer: AiAnswer): Promise<AiAnswer> {
  const json = JSON.stringify(answer);
  const maskedJson = await scan.maskJson(json);
  return maskedJson === json ? answer : (JSON.parse(maskedJson) as AiAnswer);
}

export class Ai {
  private readonly usage = new AiUsageRecorder({ db: this.options.db });
  private readonly budgetsByRun = new LRUCache<number, RunRequestBudget>({
    max: MAX_COUNTED_RUNS,
    ttl: RUN_COUNTS_TTL_MS,
  });

  constructor(private readonly options: AiDependencies) {}

  private getOrCreateBudget(runId: number): RunRequestBudget {
    const runBudget = this.budgetsByRun.get(runId) ?? new RunRequestBudget();
    this.budgetsByRun.set(runId, runBudget);
    return runBudget;
  }

  /** Returns the ID of the caller's run if it executes a server action. @throws AiError INTEGRATION_UNAVAILABLE for other callers */
  private async requireServerRun({ runId }: Caller, appId: number): Promise<number> {
    const runRows =
      runId === null
        ? []
        : await rows<{ environment: string }>(this.options.db, SELECT_RUN_ENVIRONMENT, [runId, appId]);
    if (runId !== null && runRows[0]?.environment === "server") return runId;
    throw new AiError("INTEGRATION_UNAVAILABLE", "Svc.AI is available in server actions only");
  }

  private async sendRequest(
    { appId, runId, setting, model, request, signal }: ModelRequest,
    requested: AiOptions,
    parts: StreamedCompletionReader | null,
  ): Promise<AiAnswer> {
    const { path, headers, body } = request;
    const url = new URL(setting.baseUrl.href.replace(/\/$/, "") + path);
    const origin = normalizeOrigin(url);
    const response = await this.options.requestSender.send(
      {
        ...{ url, method: "POST", body, timeoutMs: AI_TIMEOUT_MS },
        headers: parts ? { ...headers, "accept-encoding": "identity" } : headers,
        onPart: parts ? (part) => parts.push(part) : undefined,
      },
      {
        pool: `${appId} ai`,
        budget: this.getOrCreateBudget(runId),
        mayUseOrigin: (requested) => requested === origin,
        originOf: normalizeOrigin,
        hasCredential: true,
        signal,
      },
    );
    if (response.status < 200 || response.status > 299)
      throw await createProviderError(
        url,
        response,
        async (text) => (await (await this.readScanner(appId)).mask([{ text }]))[0]!,
      );
    return parts
      ? parts.finishCompletion()
      : PROVIDER_APIS[setting.provider].readResponse(requested, model, response.body);
  }

  /**
   * Returns a scanner that masks the app's secrets, because a provider could repeat the received key in its answer. Retries for a few
   * seconds while the database is unavailable.
   */
  private async readScanner(appId: number): Promise<SecretScanner> {
    const { settings, scannerCache } = this.options;
    const { version, entries } = await retryInOutage(AbortSignal.timeout(OUTAGE_RETRY_MS), () =>
      settings.secretValues.read(appId),
    );
    const secrets = entries.flatMap(([name, value]) => findSecretsInSettingValue(name, value));
    return scannerCache.getScanner(String(appId), `${appId}:${version}`, secrets);
  }

  /**
   * Runs `write`, which stores facts about a call. Retries for a few seconds while the database is unavailable. Only logs a failure,
   * because the caller must get the answer, which is paid for.
   */
  private async record(appId: number, write: (executor: SqlClient) => Promise<unknown>): Promise<void> {
    const { db, log } = this.options;
    try {
      await writeOnceInOutage(db, AbortSignal.timeout(OUTAGE_RETRY_MS), write);
    } catch (error) {
      log.error({ err: error, appId }, "the usage or the log event of a call to an AI provider could not be stored");
    }
  }

  private async performCall(
    caller: Caller,
    { appId, call, options, disconnectSignal, onTextPart }: AiRequest,
  ): Promise<AiAnswer> {
    const { settings, logEvents, allowHttp } = this.options;
    const runId = await this.requireServerRun(caller, appId);
    const parsedOptions = parseAiOptions(call, options);
    const setting = parseAiSetting((await settings.readAll(appId)).get(AI_SETTING_KEY), allowHttp);
    const model = selectAiModel(setting, parsedOptions.model);
    // Builds the request before the call is counted: a call that the provider does not support must not use up the daily limits.
    const request = PROVIDER_APIS[setting.provider].buildRequest(parsedOptions, model, setting.key);
    const estimatedTokens = estimateTotalTokens(parsedOptions);
    const correctTokenCount = await this.usage.reserve(appId, estimatedTokens, setting);
    const startedAtMs = performance.now();
    let usedTokens = 0;
    let parts: StreamedCompletionReader | null = null;
    try {
      const signal = disconnectSignal?.() ?? new AbortController().signal;
      if (parsedOptions.call === "completions" && parsedOptions.stream) {
        const sendText = onTextPart ?? (async () => undefined);
        parts = new StreamedCompletionReader(
          PROVIDER_APIS[setting.provider].createEventReader(model),
          await this.readScanner(appId),
          sendText,
        );
      }
      const receivedAnswer = await this.sendRequest(
        { appId, runId, setting, model, request, signal },
        parsedOptions,
        parts,
      );
      usedTokens = countUsedTokens(receivedAnswer, estimatedTokens);
      // Reads the scanner only now, because the app may have got a new secret while the provider answered.
      const answer = await maskAnswer(await this.readScanner(appId), receivedAnswer);
      const callFacts = { model, ...readTokenUsage(answer), durationMs: Math.round(performance.now() - startedAtMs) };
      const data = { ...callFacts, ...(setting.logTexts && collectLoggedTexts(parsedOptions, answer)) };
      await this.record(appId, (executor) =>
        logEvents.emit(executor, caller, appId, { type: EVENT_TYPE_BY_CALL[call], data }),
      );
      return answer;
    } finally {
      parts?.stop();
      // A provider also charges for a stream that ended early. So the tokens of the input and of the received text count.
      const receivedCharacters = parts?.characters ?? null;
      const spentTokens =
        receivedCharacters === null
          ? 0
          : estimateInputTokens(parsedOptions) + Math.ceil(receivedCharacters / CHARACTERS_PER_TOKEN);
      await this.record(appId, (executor) => correctTokenCount(executor, usedTokens || spentTokens));
    }
  }

  /**
   * Sends a request to the AI provider. An error of the provider, the setting or the options does not reject the
   * promise: the reply then contains the error code and the message.
   */
  async callModel(caller: Caller, request: AiRequest): Promise<AiReply> {
    try {
      return { answer: await this.performCall(caller, request) };
    } catch (error) {
      if (!(error instanceof AiError || error instanceof OutgoingError)) throw error;
      return { failure: { code: error.code, message: error.message } };
    }
  }
}
