/** Validates the app's setting `__ai`: the AI provider, its API key, and daily limits. */
import { describeType, describeValue, isObject } from "../describe-value.js";
import { type AiError, createAiPolicyError } from "./failure.js";

export const AI_SETTING_KEY = "__ai";

export type AiProvider = "openai" | "anthropic";

export interface AiSetting {
  provider: AiProvider;
  /** Base URL of the provider's API, without credentials, query and fragment. */
  baseUrl: URL;
  key: string;
  /** Models that the app's code may use, the default first. null allows all models. */
  models: readonly string[] | null;
  dailyTokens: number | null;
  dailyRequests: number | null;
  logTexts: boolean;
}

const DEFAULT_BASE_URLS: Record<AiProvider, string> = {
  openai: "https://api.openai.com/v1",
  anthropic: "https://api.anthropic.com",
};

const createSettingError = (field: string, expected: string, value: unknown) =>
  createAiPolicyError(`the setting ${AI_SETTING_KEY}.${field} must be ${expected} (got ${describeValue(value)})`);

const isNonEmptyString = (value: unknown): value is string => typeof value === "string" && value !== "";

function readDailyLimit(setting: Record<string, unknown>, field: "dailyTokens" | "dailyRequests"): number | null {
  const value = setting[field] ?? null;
  if (value === null || (Number.isSafeInteger(value) && (value as number) >= 0)) return value as number | null;
  throw createSettingError(field, "a whole number of 0 or more", value);
}

function readModels({ models = null }: Record<string, unknown>): readonly string[] | null {
  if (models === null) return null;
  if (Array.isArray(models) && models.length > 0 && models.every(isNonEmptyString)) return models;
  throw createSettingError("models", "an array of at least one model name, or null to allow all models", models);
}

/** Creates the error for an invalid base URL. The message contains no credentials, query and fragment of the URL. */
function createBaseUrlError(url: URL | null, input: unknown, allowHttp: boolean): AiError {
  const schemes = allowHttp ? "an https or http URL" : "an https URL";
  const received = url === null ? describeType(input) : `${url.protocol}//${url.host}${url.pathname}`;
  const remedy = "; to allow http and private addresses, the operator sets ALLOW_PRIVATE_NETWORK=1";
  const advice = !allowHttp && url?.protocol === "http:" ? remedy : "";
  const expected = `${schemes} without credentials, query and fragment, such as https://api.mistral.ai/v1`;
  return createAiPolicyError(`the setting ${AI_SETTING_KEY}.baseUrl must be ${expected} (got ${received})${advice}`);
}

/**
 * Validates the value of the setting `__ai`.
 * @param allowHttp true if the API key may be sent over http (ALLOW_PRIVATE_NETWORK)
 * @throws AiError POLICY with the name of the invalid field; the message never contains the key
 */
export function parseAiSetting(value: unknown, allowHttp: boolean): AiSetting {
  if (value === undefined)
    throw createAiPolicyError(
      `the app has no setting ${AI_SETTING_KEY}; set it to an object {provider, key} in Studio`,
    );
  if (!isObject(value))
    throw createAiPolicyError(
      `the setting ${AI_SETTING_KEY} must be an object {provider, key} (got ${describeType(value)})`,
    );
  const { provider = "openai", key, logTexts = false } = value;
  if (provider !== "openai" && provider !== "anthropic")
    throw createSettingError("provider", '"openai" or "anthropic"', provider);
  if (!isNonEmptyString(key) || !/^[\x21-\x7e]+$/.test(key)) {
    const fault = `must be ASCII characters without spaces (got ${describeType(key)})`;
    throw createAiPolicyError(
      `the setting ${AI_SETTING_KEY}.key ${fault}; if the server needs no key, set any text, such as none`,
    );
  }
  const { baseUrl: input = DEFAULT_BASE_URLS[provider] } = value;
  const url = typeof input === "string" ? URL.parse(input) : null;
  const isUsable =
    url !== null &&
    (url.protocol === "https:" || (allowHttp && url.protocol === "http:")) &&
    url.username === "" &&
    url.password === "" &&
    url.search === "" &&
    url.hash === "";
  if (!isUsable) throw createBaseUrlError(url, input, allowHttp);
  if (typeof logTexts !== "boolean") throw createSettingError("logTexts", "true or false", logTexts);
  const limits = {
    dailyTokens: readDailyLimit(value, "dailyTokens"),
    dailyRequests: readDailyLimit(value, "dailyRequests"),
  };
  return { provider, baseUrl: url, key, models: readModels(value), ...limits, logTexts };
}

/** Returns the model for a call: `requestedModel`, or the default. @throws AiError POLICY if the model is not listed, or there is no default */
export function selectAiModel({ models }: AiSetting, requestedModel: string | null): string {
  const model = requestedModel ?? models?.[0];
  if (model === undefined)
    throw createAiPolicyError(
      `"model" is required, because the setting ${AI_SETTING_KEY} has no "models" and so no default`,
    );
  if (models === null || models.includes(model)) return model;
  throw createAiPolicyError(
    `"model" must be one of the models in the setting ${AI_SETTING_KEY}: ${models.join(", ")} (got ${describeValue(model)})`,
  );
}
