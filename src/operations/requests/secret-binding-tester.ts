/** Tests secret bindings, and lists the actions that use each binding. A binding adds the value of a setting to requests to one origin. */
import { type Db, rows } from "../../data/database.js";
import type { OutgoingHopSummary } from "../../engine/outgoing.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import { describeValue, isObject } from "../../rules/describe-value.js";
import { findIntegrationOriginsFault, toStoredIntegrationOrigins } from "../../rules/integration-origins.js";
import { createFlatShape, refuseUnknownFields } from "../../rules/unknown-fields.js";
import { recordChange } from "../records/audit.js";
import type { RunRequestSender, SecretBindings } from "./run-requests.js";
import type { SecretBindingStore } from "./secret-bindings.js";

export interface SecretBindingTestResult {
  /** HTTP status of the response; null if there was no response. */
  status: number | null;
  durationMs: number;
  receivedBytes: number;
  /** Beginning of the response body, with the values of bound settings masked; null if there was no response. */
  body: string | null;
  /** Code of the error that `request()` would throw in an action; null if there was a response. `error` is the error's message. */
  code: string | null;
  error: string | null;
}

/** A draft uses a binding if it lists the binding's origin and its code contains the key of the binding's setting. */
export interface BindingUse {
  key: string;
  origin: string;
  actions: { id: number; name: string }[];
}

const TEST_METHODS: readonly unknown[] = ["GET", "HEAD", "POST"];
const TEST_SHAPE = createFlatShape(["key", "origin", "method", "path"]);
const PATH_MAX_CHARACTERS = 2_000;
const SHOWN_BODY_MAX_CHARACTERS = 4_000;
const LISTED_USES_MAX = 1_000;

/* Selects the drafts that use a binding. `strpos` comes first, because it is faster than the regular expression and excludes most code. */
const SELECT_ACTIONS_WITH_BINDING = `
  SELECT binding.key, binding.origin, action.id, action.name
    FROM unnest($2::text[], $3::text[], $4::text[]) AS binding (key, origin, literal)
    JOIN action ON action.app_id = $1 AND action.master_id IS NULL AND action.integration_origins::jsonb ? binding.origin
     AND strpos(action.code, binding.key) > 0
     AND action.code ~ ('(^|[^[:alnum:]_$])' || binding.literal || '($|[^[:alnum:]_$])')
   ORDER BY action.name LIMIT ${LISTED_USES_MAX}`;

const createInvalidRequestError = (message: string) => new ActionError("REQUEST_INVALID", message);

interface BindingTestInput {
  key: string;
  origin: string;
  method: string;
  url: string;
}

/** Returns an origin in the form in which bindings store it, for example without a trailing slash; any other text unchanged. */
const normalizeIfOrigin = (text: string): string =>
  findIntegrationOriginsFault([text], "server", { allowPrivateNetwork: true }) === null
    ? toStoredIntegrationOrigins([text])[0]!
    : text;

/** Parses the body of a request to test a binding. @throws REQUEST_INVALID with the name of the wrong field */
function parseTestInput(body: unknown): BindingTestInput {
  if (!isObject(body)) throw createInvalidRequestError(`the body must be a JSON object (got ${describeValue(body)})`);
  const { key, origin } = body;
  const [method, path] = [body["method"] ?? "GET", body["path"] ?? "/"];
  for (const [name, value] of Object.entries({ key, origin })) {
    if (typeof value !== "string")
      throw createInvalidRequestError(`${name} must be a string (got ${describeValue(value)})`);
  }
  if (!TEST_METHODS.includes(method))
    throw createInvalidRequestError(`method must be GET, HEAD or POST (got ${describeValue(method)})`);
  const isPath = typeof path === "string" && path.startsWith("/") && path.length <= PATH_MAX_CHARACTERS;
  if (!isPath) {
    throw createInvalidRequestError(
      `path must start with / and have at most ${PATH_MAX_CHARACTERS} characters (got ${describeValue(path)})`,
    );
  }
  refuseUnknownFields(body, TEST_SHAPE);
  const normalizedOrigin = normalizeIfOrigin(origin as string);
  return { key: key as string, origin: normalizedOrigin, method: method as string, url: `${normalizedOrigin}${path}` };
}

interface SecretBindingTesterOptions {
  db: Db;
  bindings: Pick<SecretBindingStore, "list"> & { runBindings: SecretBindings };
  requests: RunRequestSender;
}

export class SecretBindingTester {
  constructor(private readonly options: SecretBindingTesterOptions) {}

  async listUses(appId: number): Promise<BindingUse[]> {
    const { db } = this.options;
    const { bindings: all } = await this.options.bindings.list(appId);
    const escapedKeys = all.map(({ key }) => key.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    const values = [appId, all.map(({ key }) => key), all.map(({ origin }) => origin), escapedKeys];
    const bindingUseRows =
      all.length === 0
        ? []
        : await rows<{ key: string; origin: string; id: number; name: string }>(
            db,
            SELECT_ACTIONS_WITH_BINDING,
            values,
          );
    return all.map(({ key, origin }) => ({
      key,
      origin,
      actions: bindingUseRows
        .filter((use) => use.key === key && use.origin === origin)
        .map(({ id, name }) => ({ id: Number(id), name })),
    }));
  }

  /** Sends one request with the credential of a binding. A failed request is a result, not an error. @throws REQUEST_INVALID */
  async send(caller: Caller, appId: number, body: unknown, signal: AbortSignal): Promise<SecretBindingTestResult> {
    const { db, requests } = this.options;
    const { key, origin, method, url } = parseTestInput(body);
    const { bindings: all } = await this.options.bindings.list(appId);
    if (!all.some((binding) => binding.key === key && binding.origin === origin)) {
      throw createInvalidRequestError(
        `the app has no secret binding ${describeValue(key)} for ${describeValue(origin)}`,
      );
    }
    const scanner = await this.options.bindings.runBindings.getScanner(appId);
    await recordChange(db.manager, caller, { appId, type: "app.secretBindings.test", data: { key, origin, method } });
    let requestSummary: OutgoingHopSummary | null = null;
    const { send } = requests.beginRun({
      appId,
      environment: "server",
      origins: [origin],
      findInUrl: async (text) => scanner?.findInUrl(text) ?? null,
      printLine: () => undefined,
      onHostContacted: () => undefined,
      startRequestSpan: () => (ended) => {
        requestSummary = ended;
      },
    });
    const startedAtMs = performance.now();
    const { head, text } = await send(JSON.stringify({ url, method, auth: key }), signal);
    const durationMs = Math.round(performance.now() - startedAtMs);
    const receivedBytes = (requestSummary as OutgoingHopSummary | null)?.receivedBytes ?? 0;
    const [status, code, error] = JSON.parse(head) as [number, string, string];
    if (status === 0) return { status: null, durationMs, receivedBytes, body: null, code, error };
    return {
      status,
      durationMs,
      receivedBytes,
      body: text.slice(0, SHOWN_BODY_MAX_CHARACTERS),
      code: null,
      error: null,
    };
  }
}
