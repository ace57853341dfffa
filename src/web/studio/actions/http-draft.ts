/**
 * Converts an HTTP trigger to the texts of the form (the draft), and the draft to the service's input. Sends invalid
 * texts unchanged, because only the service validates them.
 */
import type { HttpAuth } from "../../../data/action-types.js";
import type { TriggerWhereInput } from "../documents.js";
import type { Action } from "../shared/model.js";

/** Form values of an HTTP trigger. Numbers and lists are the texts that the person typed. */
export interface HttpDraft {
  method: string;
  path: string;
  authType: HttpAuth["type"];
  setting: string;
  scheme: string;
  toleranceSeconds: string;
  header: string;
  algorithm: string;
  encoding: string;
  prefix: string;
  timestampHeader: string;
  /** Allowed origins, separated by spaces or commas. */
  origins: string;
  respond: string;
  idempotencyHeader: string;
}

/** Filter fields of a trigger (`where`) as the service returns them. In an action template, some fields are missing. */
export type TriggerWhere = Partial<NonNullable<Action["triggers"][number]["where"]>> | null;

export function createHttpDraft(where?: TriggerWhere): HttpDraft {
  const { method, path, auth, cors, respond, idempotencyHeader } = where ?? {};
  const { type, setting, scheme, toleranceSeconds, header, algorithm, encoding, prefix, timestampHeader } = auth ?? {};
  return {
    method: method ?? "",
    path: path ?? "",
    authType: type ?? "secret",
    setting: setting ?? "",
    scheme: scheme ?? "standard-webhooks",
    toleranceSeconds: toleranceSeconds === undefined || toleranceSeconds === null ? "" : String(toleranceSeconds),
    header: header ?? "",
    algorithm: algorithm ?? "",
    encoding: encoding ?? "",
    prefix: prefix ?? "",
    timestampHeader: timestampHeader ?? "",
    origins: cors?.origins.join(" ") ?? "",
    respond: respond ?? "",
    idempotencyHeader: idempotencyHeader ?? "",
  };
}

const emptyToNull = (text: string): string | null => text.trim() || null;

function authToInput(draft: HttpDraft) {
  const { authType: type, setting, scheme, toleranceSeconds } = draft;
  if (type === "basic") return { type, setting };
  if (type !== "signature") return { type };
  const toleranceInput = toleranceSeconds.trim() === "" ? null : Number(toleranceSeconds);
  const { header, algorithm, encoding, prefix, timestampHeader } = draft;
  const hmacInput = {
    header: emptyToNull(header),
    algorithm: emptyToNull(algorithm),
    encoding: emptyToNull(encoding),
    prefix: emptyToNull(prefix),
    timestampHeader: emptyToNull(timestampHeader),
  };
  return { type, setting, scheme, toleranceSeconds: toleranceInput, ...(scheme === "hmac" && hmacInput) };
}

export function httpDraftToInput(draft: HttpDraft): TriggerWhereInput {
  const origins = draft.origins.split(/[\s,]+/).filter(Boolean);
  return {
    method: (emptyToNull(draft.method) as TriggerWhereInput["method"]) ?? null,
    path: draft.path.trim(),
    auth: authToInput(draft),
    cors: origins.length === 0 ? null : { origins },
    respond: emptyToNull(draft.respond),
    idempotencyHeader: emptyToNull(draft.idempotencyHeader),
  };
}
