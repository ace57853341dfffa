/**
 * Converts an action to the values of the form (the draft), and the draft to the service's input. Sends invalid texts
 * unchanged, because only the service validates them.
 */
import type {
  ActionAccess,
  ConcurrencyPolicy,
  Environment,
  SourceLanguage,
  TriggerType,
} from "../../../data/action-types.js";
import type { CreateActionInput, TriggerInput } from "../documents.js";
import type { Action } from "../shared/model.js";
import { createHttpDraft, type HttpDraft, httpDraftToInput, type TriggerWhere } from "./http-draft.js";

/**
 * Trigger as one row of the form. `dataFilterText` is JSON text, and `dataSourceId` is a number as text. Each is "" if
 * the trigger does not use it.
 */
export interface TriggerDraft {
  /** React key of the row while it is edited. */
  rowKey: number;
  trigger: TriggerType;
  eventType: string;
  dataSourceId: string;
  dataFilterText: string;
  http: HttpDraft;
}

export interface ActionDraft {
  name: string;
  description: string;
  code: string;
  active: boolean;
  environment: Environment;
  triggers: TriggerDraft[];
  dependencies: string[];
  frequency: string;
  timezone: string;
  /** People who can run the action. `user` is JSON text with conditions on the app user's columns; used only if `who` is "user". */
  access: { who: "everyone" | "signedIn" | "editors" | "user"; user: string };
  /** Concurrency limit; an empty `policy` means no limit. `limit` is the text that the person typed. */
  concurrency: { policy: ConcurrencyPolicy | ""; limit: string; key: string };
  /** Debounce; an empty `delayMs` means no debounce. The times in milliseconds are the texts that the person typed. */
  debounce: { delayMs: string; maxWaitMs: string; manual: boolean };
  timeoutMs: string;
  jitterSeconds: string;
  integrationOrigins: string[];
  /** Source files from which the service builds the code; null if the person edits the code itself. */
  source: SourceFiles | null;
}

export interface SourceFiles {
  language: SourceLanguage;
  fileList: { path: string; text: string }[];
}

const NEW_ACTION_CODE = `/**
 * context.payload   what the caller passed, {} when nothing
 * context.settings  the app's _private and __protected settings
 */
async function execute(context) {
  const { name = "world" } = context.payload;
  console.log("greeting", name);
  return { hello: name };
}
`;

let lastRowKey = 0;

export function createTriggerDraft(trigger: TriggerType, where?: TriggerWhere): TriggerDraft {
  lastRowKey += 1;
  const { type, dataSourceId, data } = where ?? {};
  return {
    rowKey: lastRowKey,
    trigger,
    eventType: type ?? (trigger === "analytics" ? "analytics.pageView" : ""),
    dataSourceId: String(dataSourceId ?? ""),
    dataFilterText: data === undefined || data === null ? "" : JSON.stringify(data, null, 2),
    http: createHttpDraft(where),
  };
}

export function createDefaultDraft(): ActionDraft {
  return {
    name: "",
    description: "",
    code: NEW_ACTION_CODE,
    active: true,
    environment: "server",
    triggers: [createTriggerDraft("manual")],
    dependencies: [],
    frequency: "",
    timezone: "",
    access: { who: "everyone", user: "" },
    concurrency: { policy: "", limit: "", key: "" },
    debounce: { delayMs: "", maxWaitMs: "", manual: false },
    timeoutMs: "",
    jitterSeconds: "",
    integrationOrigins: [],
    source: null,
  };
}

export function actionToDraft(action: Action): ActionDraft {
  const { name, code, active, environment, dependencies, integrationOrigins } = action;
  return {
    ...{ name, code, active, environment, dependencies, integrationOrigins },
    description: action.description ?? "",
    source: action.source,
    triggers: action.triggers.map(({ trigger, where }) => createTriggerDraft(trigger, where)),
    frequency: action.frequency ?? "",
    timezone: action.timezone ?? "",
    access: accessToDraft(action.access as ActionAccess | null),
    ...limitsToDraft(action),
  };
}

function accessToDraft(access: ActionAccess | null): ActionDraft["access"] {
  if (access === null || typeof access === "string") return { who: access ?? "everyone", user: "" };
  return { who: "user", user: JSON.stringify(access.user, null, 2) };
}

const formatNumber = (value: number | null | undefined): string =>
  value === null || value === undefined ? "" : String(value);

type LimitDraft = Pick<ActionDraft, "concurrency" | "debounce" | "timeoutMs" | "jitterSeconds">;

function limitsToDraft({ concurrency, debounce, timeoutMs, jitterSeconds }: Action): LimitDraft {
  return {
    concurrency: {
      policy: concurrency?.policy ?? "",
      limit: formatNumber(concurrency?.limit),
      key: concurrency?.key ?? "",
    },
    debounce: {
      delayMs: formatNumber(debounce?.delayMs),
      maxWaitMs: formatNumber(debounce?.maxWaitMs),
      manual: debounce?.manual ?? false,
    },
    timeoutMs: formatNumber(timeoutMs),
    jitterSeconds: formatNumber(jitterSeconds),
  };
}

function parseJsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function triggerToInput({ trigger, eventType, dataSourceId, dataFilterText, http }: TriggerDraft): TriggerInput {
  if (trigger === "log") {
    return { trigger, where: { type: eventType, ...(dataSourceId !== "" && { dataSourceId: Number(dataSourceId) }) } };
  }
  if (trigger === "http") return { trigger, where: httpDraftToInput(http) };
  if (trigger !== "analytics") return { trigger };
  return {
    trigger,
    where: { type: eventType, ...(dataFilterText.trim() !== "" && { data: parseJsonOrText(dataFilterText) }) },
  };
}

const parseNumber = (text: string): number | null => (text.trim() === "" ? null : Number(text));

function limitsToInput({ concurrency, debounce, timeoutMs, jitterSeconds }: LimitDraft) {
  const { policy: concurrencyPolicy, limit, key } = concurrency;
  const { delayMs, maxWaitMs, manual } = debounce;
  return {
    concurrency:
      concurrencyPolicy === ""
        ? null
        : { policy: concurrencyPolicy, limit: parseNumber(limit), key: key.trim() || null },
    debounce:
      delayMs.trim() === "" ? null : { delayMs: parseNumber(delayMs), maxWaitMs: parseNumber(maxWaitMs), manual },
    timeoutMs: parseNumber(timeoutMs),
    jitterSeconds: parseNumber(jitterSeconds),
  };
}

export function draftToActionInput(draft: ActionDraft): CreateActionInput {
  const {
    triggers,
    frequency,
    timezone,
    access,
    concurrency,
    debounce,
    timeoutMs,
    jitterSeconds,
    code,
    source,
    ...sharedFields
  } = draft;
  return {
    ...sharedFields,
    // Sends the source files instead of the code, if there are any. A save with only the code would delete the source files.
    ...(source ? { source } : { code }),
    access: access.who === "user" ? { user: parseJsonOrText(access.user) } : access.who,
    ...limitsToInput({ concurrency, debounce, timeoutMs, jitterSeconds }),
    triggers: triggers.map(triggerToInput),
    frequency: frequency.trim() || null,
    timezone: timezone.trim() || null,
  };
}

export function haveSameActionInput(a: ActionDraft, b: ActionDraft): boolean {
  return JSON.stringify(draftToActionInput(a)) === JSON.stringify(draftToActionInput(b));
}
