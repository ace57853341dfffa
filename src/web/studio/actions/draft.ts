/**
 * Draft of an action as the form's texts, and its conversion to the service's input. Invalid texts are sent unchanged, so that only the
 * service validates them.
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
import { type HttpDraft, httpDraft, httpWhereOf, type TriggerWhere } from "./http-draft.js";

/** Row of a trigger. `data` is a JSON text and `dataSourceId` digits; both are empty if unused. */
export interface TriggerDraft {
  /** React key of the row while it is edited. */
  key: number;
  trigger: TriggerType;
  type: string;
  dataSourceId: string;
  data: string;
  http: HttpDraft;
}

export interface Draft {
  name: string;
  description: string;
  code: string;
  active: boolean;
  environment: Environment;
  triggers: TriggerDraft[];
  dependencies: string[];
  frequency: string;
  timezone: string;
  /** `user` is a JSON text with tests of the app user's columns. */
  access: { who: "everyone" | "signedIn" | "editors" | "user"; user: string };
  /** Without a policy there is no concurrency limit. Numbers are stored as typed, here and below. */
  concurrency: { policy: ConcurrencyPolicy | ""; limit: string; key: string };
  /** Without a delay there is no debounce. */
  debounce: { delayMs: string; maxWaitMs: string; manual: boolean };
  timeoutMs: string;
  jitterSeconds: string;
  integrationOrigins: string[];
  /** Source files from which the code is built; null if the person edits the code itself. */
  source: Source | null;
}

export interface Source {
  language: SourceLanguage;
  files: Record<string, string>;
}

const FIRST_CODE = `/**
 * context.payload   what the caller passed, {} when nothing
 * context.settings  the app's _private and __protected settings
 */
async function execute(context) {
  const { name = "world" } = context.payload;
  console.log("greeting", name);
  return { hello: name };
}
`;

let keys = 0;

export function triggerDraft(trigger: TriggerType, where?: TriggerWhere): TriggerDraft {
  keys += 1;
  const { type, dataSourceId, data } = where ?? {};
  return {
    key: keys,
    trigger,
    type: type ?? (trigger === "analytics" ? "analytics.pageView" : ""),
    dataSourceId: String(dataSourceId ?? ""),
    data: data === undefined || data === null ? "" : JSON.stringify(data, null, 2),
    http: httpDraft(where),
  };
}

export function newDraft(): Draft {
  return {
    name: "",
    description: "",
    code: FIRST_CODE,
    active: true,
    environment: "server",
    triggers: [triggerDraft("manual")],
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

export function draftOf(action: Action): Draft {
  const { name, code, active, environment, dependencies, integrationOrigins } = action;
  return {
    ...{ name, code, active, environment, dependencies, integrationOrigins },
    description: action.description ?? "",
    source: action.source as Source | null,
    triggers: action.triggers.map(({ trigger, where }) => triggerDraft(trigger, where)),
    frequency: action.frequency ?? "",
    timezone: action.timezone ?? "",
    access: accessDraft(action.access as ActionAccess | null),
    ...limitsOf(action),
  };
}

function accessDraft(access: ActionAccess | null): Draft["access"] {
  if (access === null || typeof access === "string") return { who: access ?? "everyone", user: "" };
  return { who: "user", user: JSON.stringify(access.user, null, 2) };
}

const typed = (value: number | null | undefined): string =>
  value === null || value === undefined ? "" : String(value);

type LimitDraft = Pick<Draft, "concurrency" | "debounce" | "timeoutMs" | "jitterSeconds">;

function limitsOf({ concurrency, debounce, timeoutMs, jitterSeconds }: Action): LimitDraft {
  return {
    concurrency: {
      policy: concurrency?.policy ?? "",
      limit: typed(concurrency?.limit),
      key: concurrency?.key ?? "",
    },
    debounce: {
      delayMs: typed(debounce?.delayMs),
      maxWaitMs: typed(debounce?.maxWaitMs),
      manual: debounce?.manual ?? false,
    },
    timeoutMs: typed(timeoutMs),
    jitterSeconds: typed(jitterSeconds),
  };
}

/** Parses JSON. Returns the text itself if it is not JSON. */
function lenient(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function triggerOf({ trigger, type, dataSourceId, data, http }: TriggerDraft): TriggerInput {
  if (trigger === "log") {
    return { trigger, where: { type, ...(dataSourceId !== "" && { dataSourceId: Number(dataSourceId) }) } };
  }
  if (trigger === "http") return { trigger, where: httpWhereOf(http) };
  if (trigger !== "analytics") return { trigger };
  return { trigger, where: { type, ...(data.trim() !== "" && { data: lenient(data) }) } };
}

const numberOf = (text: string): number | null => (text.trim() === "" ? null : Number(text));

function limitInputs({ concurrency, debounce, timeoutMs, jitterSeconds }: LimitDraft) {
  const { policy, limit, key } = concurrency;
  const { delayMs, maxWaitMs, manual } = debounce;
  return {
    concurrency: policy === "" ? null : { policy, limit: numberOf(limit), key: key.trim() || null },
    debounce: delayMs.trim() === "" ? null : { delayMs: numberOf(delayMs), maxWaitMs: numberOf(maxWaitMs), manual },
    timeoutMs: numberOf(timeoutMs),
    jitterSeconds: numberOf(jitterSeconds),
  };
}

export function dataOf(draft: Draft): CreateActionInput {
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
    ...same
  } = draft;
  return {
    ...same,
    // `source` is sent too, because sending only the code would delete the source files.
    ...(source ? { source } : { code }),
    access: access.who === "user" ? { user: lenient(access.user) } : access.who,
    ...limitInputs({ concurrency, debounce, timeoutMs, jitterSeconds }),
    triggers: triggers.map(triggerOf),
    frequency: frequency.trim() || null,
    timezone: timezone.trim() || null,
  };
}

/** True if two drafts would send the same input. */
export function same(a: Draft, b: Draft): boolean {
  return JSON.stringify(dataOf(a)) === JSON.stringify(dataOf(b));
}
