/**
 * `Svc.AI` for server actions: sends requests to the provider in the app's `__ai` setting, counts them against its
 * daily limits, and logs them. Code passes options and receives the answer, but never the provider's key.
 */
import { LRUCache } from "lru-cache";
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import { OutgoingError, type OutgoingResponse, type OutgoingSender, RunBudget } from "../../engine/outgoing.js";
import type { Scan, SecretScans } from "../../engine/secret-scan.js";
import { AI_TIMEOUT_MS } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import type { AiAnswer, TokenUsage } from "../../rules/ai/answer.js";
import { ANTHROPIC_API } from "../../rules/ai/anthropic.js";
import { type AiCode, AiError } from "../../rules/ai/failure.js";
import { OPENAI_API } from "../../rules/ai/openai.js";
import { type AiCall, type AiOptions, readAiOptions } from "../../rules/ai/options.js";
import { valueAtPath } from "../../rules/ai/provider-json.js";
import { AI_SETTING, type AiSetting, modelOf, readAiSetting } from "../../rules/ai/setting.js";
import { normalOrigin } from "../../rules/integration-origins.js";
import { secretsOfSetting } from "../../rules/secrets.js";
import type { LogEvents } from "../records/log-events.js";
import type { Settings } from "../settings/settings.js";
import { CompletionParts } from "./completion-parts.js";
import { createAiUsage } from "./usage.js";

/**
 * Reply to a request of the package svc-ai: the value that code gets, or the error with which its promise rejects. Also
 * the last line of a stream.
 */
export type AiReply = { answer: AiAnswer } | { failure: { code: AiCode; message: string } };

export interface AiRequest {
  appId: number;
  call: AiCall;
  options: unknown;
  gone?: (() => AbortSignal) | undefined;
  /** Receives the text of a streamed completion in parts. */
  onText?: (text: string) => Promise<void>;
}

const EVENT_BY_CALL: Record<AiCall, string> = {
  completions: "ai.completions",
  embeddings: "ai.embeddings",
  image: "ai.image",
  transcribe: "ai.audio",
};

const PROVIDER_APIS = { openai: OPENAI_API, anthropic: ANTHROPIC_API };

/** Maximum number of runs whose requests are counted (contract, section 9: concurrent requests, total, and bytes). */
const RUNS_MAX = 2_000;
/** Time for which the counts of a run are kept. */
const RUN_LASTS_MS = 10 * 60 * 1000;

const CHARACTERS_PER_TOKEN = 4;
const ANSWER_TOKENS = 1_024;
/**
 * Matches the name of a provider's error, which code receives. Sentences are dropped, because they could repeat the
 * request.
 */
const ERROR_NAME = /^[a-z][a-z0-9_]{0,60}$/;

/**
 * Selects the environment of a run. A run outside of the server cannot read settings either (specification, Execution
 * context).
 */
const SELECT_RUN_ENVIRONMENT = `
  SELECT action.environment FROM run JOIN action ON action.id = run.action_id WHERE run.id = $1 AND run.app_id = $2`;

/** Returns the estimated number of tokens in the texts of a call. */
function inputTokens(options: AiOptions): number {
  if (options.call === "image" || options.call === "transcribe") return 0;
  const texts = options.call === "embeddings" ? options.input : options.messages.map(({ content }) => content);
  const characters = texts.reduce((sum, text) => sum + text.length, 0);
  return Math.ceil(characters / CHARACTERS_PER_TOKEN);
}

/** Returns the estimated number of tokens of a call with its answer. */
function expectedTokens(options: AiOptions): number {
  return inputTokens(options) + (options.call === "completions" ? (options.maxTokens ?? ANSWER_TOKENS) : 0);
}

/** Request to a language model: the run that sends it, the app's provider setting, and the model. */
interface ModelRequest {
  appId: number;
  runId: number;
  setting: AiSetting;
  model: string;
  signal: AbortSignal;
}

const usageOf = (answer: AiAnswer): TokenUsage | null => ("usage" in answer ? answer.usage : null);

/**
 * Returns the tokens that count towards the daily limit: the provider's number, or the expected number if the provider
 * states none.
 */
function usedTokens(answer: AiAnswer, expected: number): number {
  const { inputTokens = 0, outputTokens = 0 } = usageOf(answer) ?? {};
  return inputTokens + outputTokens || expected;
}

/** Returns the texts of a call for a log event, if the app enables this. */
function textsOf(options: AiOptions, answer: AiAnswer): object {
  if (options.call === "completions") {
    return { messages: options.messages, answer: "message" in answer ? answer.message.content : "" };
  }
  if (options.call === "embeddings") return { input: options.input };
  if (options.call === "image") return { prompt: options.prompt };
  return { answer: "text" in answer ? answer.text : "" };
}

/**
 * Returns the error for a response that is no success, with the name of the provider's error.
 * @param mask masks secrets in the name
 */
async function refusedBy(
  url: URL,
  response: OutgoingResponse,
  mask: (text: string) => Promise<string>,
): Promise<AiError> {
  let name: unknown;
  try {
    const body: unknown = JSON.parse(response.body.toString("utf8"));
    name = [valueAtPath(body, "error", "type"), valueAtPath(body, "error", "code")].find(
      (element) => typeof element === "string" && ERROR_NAME.test(element),
    );
  } catch {
    // The body is not JSON, so the error has only the status.
  }
  const nameText = typeof name === "string" ? ` (${await mask(name)})` : "";
  const text = `${url.origin}${url.pathname} answered ${response.status}${nameText}`;
  return new AiError(response.status === 429 ? "LIMIT" : "TRANSPORT", text);
}

export type Ai = ReturnType<typeof createAi>;

export function createAi(options: {
  db: DataSource;
  settings: Settings;
  scans: SecretScans;
  outgoing: OutgoingSender;
  logEvents: LogEvents;
  /** True if providers may have http URLs (ALLOW_PRIVATE_NETWORK). */
  allowHttp: boolean;
}) {
  const { db, settings, scans, outgoing: sender, logEvents, allowHttp } = options;
  const usage = createAiUsage({ db });
  const budgets = new LRUCache<number, RunBudget>({ max: RUNS_MAX, ttl: RUN_LASTS_MS });

  function budgetOf(runId: number): RunBudget {
    const runBudget = budgets.get(runId) ?? new RunBudget();
    budgets.set(runId, runBudget);
    return runBudget;
  }

  /** Returns the run of a server action. @throws AiError INTEGRATION_UNAVAILABLE */
  async function runOf({ runId }: Caller, appId: number): Promise<number> {
    const runRows =
      runId === null ? [] : await rows<{ environment: string }>(db, SELECT_RUN_ENVIRONMENT, [runId, appId]);
    if (runId !== null && runRows[0]?.environment === "server") return runId;
    throw new AiError("INTEGRATION_UNAVAILABLE", "Svc.AI is available in server actions only");
  }

  async function sendRequest(
    { appId, runId, setting, model, signal }: ModelRequest,
    requested: AiOptions,
    parts: CompletionParts | null,
  ): Promise<AiAnswer> {
    const { path, headers, body } = PROVIDER_APIS[setting.provider].request(requested, model, setting.key);
    const url = new URL(setting.baseUrl.href.replace(/\/$/, "") + path);
    const origin = normalOrigin(url);
    const response = await sender.send(
      {
        ...{ url, method: "POST", body, timeoutMs: AI_TIMEOUT_MS },
        headers: parts ? { ...headers, "accept-encoding": "identity" } : headers,
        onPart: parts ? (part) => parts.push(part) : undefined,
      },
      {
        pool: `${appId} ai`,
        budget: budgetOf(runId),
        mayUse: (requested) => requested === origin,
        originOf: normalOrigin,
        hasCredential: true,
        signal,
      },
    );
    if (response.status < 200 || response.status > 299)
      throw await refusedBy(url, response, async (text) => (await (await scanOf(appId)).mask([{ text }]))[0]!);
    return parts ? parts.finishCompletion() : PROVIDER_APIS[setting.provider].read(requested, model, response.body);
  }

  /**
   * Returns the scan for the secrets of the app, because a provider, or a server that imitates one, may send the key
   * back.
   */
  async function scanOf(appId: number): Promise<Scan> {
    const { version, entries } = await settings.secretValues.read(appId);
    const secrets = entries.flatMap(([name, value]) => secretsOfSetting(name, value));
    return scans.of(String(appId), `${appId}:${version}`, secrets);
  }

  async function maskAnswer(scan: Scan, answer: AiAnswer): Promise<AiAnswer> {
    const json = JSON.stringify(answer);
    const maskedJson = await scan.maskJson(json);
    return maskedJson === json ? answer : (JSON.parse(maskedJson) as AiAnswer);
  }

  async function performCall(
    caller: Caller,
    { appId, call, options: input, gone, onText }: AiRequest,
  ): Promise<AiAnswer> {
    const runId = await runOf(caller, appId);
    const requested = readAiOptions(call, input);
    const setting = readAiSetting((await settings.readAll(appId)).get(AI_SETTING), allowHttp);
    const model = modelOf(setting, requested.model);
    const expected = expectedTokens(requested);
    const settle = await usage.reserve(appId, expected, setting);
    const started = performance.now();
    let used = 0;
    let parts: CompletionParts | null = null;
    try {
      const signal = gone?.() ?? new AbortController().signal;
      if (requested.call === "completions" && requested.stream) {
        const passOn = onText ?? (async () => undefined);
        parts = new CompletionParts(PROVIDER_APIS[setting.provider].stream(model), await scanOf(appId), passOn);
      }
      const receivedAnswer = await sendRequest({ appId, runId, setting, model, signal }, requested, parts);
      // A secret may have been added while the provider answered.
      const answer = await maskAnswer(await scanOf(appId), receivedAnswer);
      used = usedTokens(answer, expected);
      const callFacts = { model, ...usageOf(answer), durationMs: Math.round(performance.now() - started) };
      const data = { ...callFacts, ...(setting.logTexts && textsOf(requested, answer)) };
      await logEvents.emit(db, caller, appId, { type: EVENT_BY_CALL[call], data });
      return answer;
    } finally {
      parts?.stop();
      // The provider charges for a stream that ended early, so the input and the received text are counted.
      const receivedCharacters = parts?.characters ?? null;
      const spentTokens =
        receivedCharacters === null ? 0 : inputTokens(requested) + Math.ceil(receivedCharacters / CHARACTERS_PER_TOKEN);
      await settle(used || spentTokens);
    }
  }

  return {
    /**
     * Sends a request. Does not reject for faults of the provider, the setting or the options: code gets their error
     * code and message.
     */
    async callModel(caller: Caller, request: AiRequest): Promise<AiReply> {
      try {
        return { answer: await performCall(caller, request) };
      } catch (error) {
        if (!(error instanceof AiError || error instanceof OutgoingError)) throw error;
        return { failure: { code: error.code, message: error.message } };
      }
    },
  };
}
