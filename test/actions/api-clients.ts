/** REST and GraphQL behind one interface, so that a test runs against both: each operation returns a status and a value. */
import type { Call, TestService } from "../harness/service.js";

/** Result of an operation. `status` is OK or the error's status; `http` is the HTTP status and only set by REST. */
export interface Outcome {
  status: string;
  error?: string;
  http?: number;
  // biome-ignore lint/suspicious/noExplicitAny: each operation returns another type
  value: any;
}

export interface ApiClient {
  name: "REST" | "GraphQL";
  create(data: unknown, call?: Call): Promise<Outcome>;
  update(id: number, data: unknown): Promise<Outcome>;
  remove(id: number): Promise<Outcome>;
  get(id: number): Promise<Outcome>;
  list(limit?: number, offset?: number): Promise<Outcome>;
  publish(id: number): Promise<Outcome>;
  unpublish(id: number): Promise<Outcome>;
  versions(id: number, limit?: number, offset?: number): Promise<Outcome>;
  /** Lists the versions that were live, the last published one first. */
  published(id: number): Promise<Outcome>;
  version(id: number, versionId: number): Promise<Outcome>;
  restore(id: number, versionId: number): Promise<Outcome>;
  versionDiff(id: number, versionId: number, against?: number | string): Promise<Outcome>;
  diff(id: number): Promise<Outcome>;
  export(): Promise<Outcome>;
  import(document: unknown, dryRun?: boolean): Promise<Outcome>;
  run(nameOrId: string | number, payload?: unknown, call?: Call): Promise<Outcome>;
  runWithResult(nameOrId: string | number, payload?: unknown, call?: Call): Promise<Outcome>;
}

type PickValue = (body: Record<string, unknown>) => unknown;

function query(values: Record<string, unknown>): string {
  const defined = Object.entries(values).filter(([, value]) => value !== undefined);
  return defined.length === 0
    ? ""
    : `?${new URLSearchParams(defined.map(([name, value]): [string, string] => [name, String(value)]))}`;
}

export function createRestApiClient({ rest, appId }: TestService): ApiClient {
  const actions = `/v3/apps/${appId}/actions`;
  const ask = async (method: string, path: string, call: Call, pick: PickValue): Promise<Outcome> => {
    const { http, body } = await rest(method, actions + path, call);
    return http < 300
      ? { status: "OK", http, value: pick(body) }
      : { status: body.status, error: body.error, http, value: body };
  };
  const all: PickValue = (body) => body;
  const none: PickValue = () => undefined;
  return {
    name: "REST",
    create: (data, call) => ask("POST", "", { ...call, body: data }, ({ action }) => action),
    update: (id, data) => ask("PUT", `/${id}`, { body: data }, ({ action }) => action),
    remove: (id) => ask("DELETE", `/${id}`, {}, none),
    get: (id) => ask("GET", `/${id}`, {}, ({ action }) => action),
    list: (limit, offset) => ask("GET", query({ limit, offset }), {}, all),
    publish: (id) => ask("POST", `/${id}/publish`, {}, all),
    unpublish: (id) => ask("POST", `/${id}/unpublish`, {}, none),
    versions: (id, limit, offset) => ask("GET", `/${id}/versions${query({ limit, offset })}`, {}, all),
    published: (id) => ask("GET", `/${id}/versions?published=true`, {}, all),
    version: (id, versionId) => ask("GET", `/${id}/versions/${versionId}`, {}, ({ version }) => version),
    restore: (id, versionId) => ask("POST", `/${id}/versions/${versionId}/restore`, {}, all),
    versionDiff: (id, versionId, against) =>
      ask("GET", `/${id}/versions/${versionId}/diff${query({ against })}`, {}, ({ diff }) => diff),
    diff: (id) => ask("GET", `/${id}/diff`, {}, ({ diff }) => diff),
    export: () => ask("GET", "/export", {}, all),
    import: (document, dryRun) => ask("POST", `/import${query({ dryRun })}`, { body: document }, all),
    run: (nameOrId, payload, call) => ask("POST", `/${nameOrId}/run`, { ...call, body: payload }, all),
    runWithResult: (nameOrId, payload, call) =>
      ask("POST", `/${nameOrId}/runWithResult`, { ...call, body: payload }, ({ result }) => result),
  };
}

const TRIGGERS = "triggers { trigger where { type dataSourceId data } }";
const CONFIGURATION_FIELDS = `name description code active environment ${TRIGGERS} dependencies frequency timezone integrationOrigins access`;
const ASSET_FIELDS = "assets { name url path }";
const LIMIT_FIELDS = "concurrency { policy limit key } debounce { delayMs maxWaitMs manual } timeoutMs jitterSeconds";
const ACTION_FIELDS = `{ id appId ${CONFIGURATION_FIELDS} actionVersion ${ASSET_FIELDS} lastRunAt createdAt updatedAt }`;
const VERSION_HEAD_FIELDS = "id createdAt userId user { id firstName lastName email }";
const SNAPSHOT_FIELDS = `{ ${CONFIGURATION_FIELDS} ${ASSET_FIELDS} action functions widgetInstanceIds masterTaskId productionTaskId actionVersion }`;
const DIFF_FIELDS = `{ from to fields before { ${CONFIGURATION_FIELDS} } after { ${CONFIGURATION_FIELDS} } code }`;

interface TypedTrigger {
  trigger: string;
  where: Record<string, unknown> | null;
}

/** Converts a trigger from GraphQL's form, which has null for absent fields, to REST's form. */
function toRestTrigger({ trigger, where }: TypedTrigger): object {
  if (!where) return { trigger };
  return { trigger, where: Object.fromEntries(Object.entries(where).filter(([, value]) => value !== null)) };
}

function plain<T>(answer: T): T {
  if (typeof answer !== "object" || answer === null) return answer;
  if (Array.isArray(answer)) return answer.map(plain) as T;
  const entries = Object.entries(answer).map(([key, value]) => [
    key,
    key === "triggers" && Array.isArray(value) ? (value as TypedTrigger[]).map(toRestTrigger) : plain(value),
  ]);
  return Object.fromEntries(entries) as T;
}

// biome-ignore lint/suspicious/noExplicitAny: an object of a GraphQL response
function toRestDiff({ from, to, fields, before, after, code }: any): object {
  const side = (id: string) => (/^\d+$/.test(id) ? Number(id) : id);
  // biome-ignore lint/suspicious/noExplicitAny: an object of a GraphQL response
  const changes = fields.map((field: any) => ({ field, before: before[field], after: after[field] }));
  return { from: side(from), to: side(to), changes, code };
}

export function createGraphqlApiClient({ graphql, appId }: TestService): ApiClient {
  const ask = async (
    operation: "query" | "mutation",
    field: string,
    selection: string,
    values: Record<string, [type: string, value: unknown]>,
    call?: Call,
  ): Promise<Outcome> => {
    const defined = Object.entries(values).filter(([, [, value]]) => value !== undefined);
    const declared = ["$appId: Int!", ...defined.map(([name, [type]]) => `$${name}: ${type}`)].join(", ");
    const passed = ["appId: $appId", ...defined.map(([name]) => `${name}: $${name}`)].join(", ");
    const variables = { appId, ...Object.fromEntries(defined.map(([name, [, value]]) => [name, value])) };
    const text = `${operation} (${declared}) { ${field}(${passed}) ${selection} }`;
    const { data, errors } = await graphql(text, variables, call);
    const [first] = errors ?? [];
    if (!first) return { status: "OK", value: plain(data[field]) };
    return { status: first.extensions.status, error: first.message, value: first.extensions };
  };
  const compared = async (request: Promise<Outcome>): Promise<Outcome> => {
    const outcome = await request;
    return outcome.status === "OK" ? { ...outcome, value: toRestDiff(outcome.value) } : outcome;
  };
  const id = (value: number): [string, number] => ["Int!", value];
  const page = (limit?: number, offset?: number) => ({
    limit: ["Int", limit] as [string, unknown],
    offset: ["Int", offset] as [string, unknown],
  });
  return {
    name: "GraphQL",
    create: (data, call) => ask("mutation", "createAction", ACTION_FIELDS, { data: ["CreateActionInput", data] }, call),
    update: (actionId, data) =>
      ask("mutation", "updateAction", ACTION_FIELDS, { id: id(actionId), data: ["UpdateActionInput", data] }),
    remove: (actionId) => ask("mutation", "removeAction", "", { id: id(actionId) }),
    get: (actionId) => ask("query", "action", ACTION_FIELDS, { id: id(actionId) }),
    list: (limit, offset) =>
      ask("query", "actions", `{ actions ${ACTION_FIELDS} pagination { total hasMore } }`, page(limit, offset)),
    publish: (actionId) => ask("mutation", "publishAction", `{ action ${ACTION_FIELDS} }`, { id: id(actionId) }),
    unpublish: (actionId) => ask("mutation", "unpublishAction", "", { id: id(actionId) }),
    versions: (actionId, limit, offset) =>
      ask(
        "query",
        "actionVersions",
        `{ versions { ${VERSION_HEAD_FIELDS} action name description active environment frequency }
           pagination { limit offset total hasMore } }`,
        { actionId: id(actionId), ...page(limit, offset) },
      ),
    published: (actionId) =>
      ask(
        "query",
        "actionVersions",
        `{ versions { ${VERSION_HEAD_FIELDS} action name description active environment frequency publishedAt }
           pagination { limit offset total hasMore } }`,
        { actionId: id(actionId), published: ["Boolean", true] },
      ),
    version: (actionId, versionId) =>
      ask("query", "actionVersion", `{ ${VERSION_HEAD_FIELDS} data ${SNAPSHOT_FIELDS} }`, {
        actionId: id(actionId),
        versionId: id(versionId),
      }),
    restore: (actionId, versionId) =>
      ask(
        "mutation",
        "restoreActionVersion",
        `{ action ${ACTION_FIELDS.replace(/}$/, "isPublished }")} restoredFromVersionId preRestoreVersionId }`,
        { actionId: id(actionId), versionId: id(versionId) },
      ),
    versionDiff: (actionId, versionId, against) =>
      compared(
        ask("query", "actionVersionDiff", DIFF_FIELDS, {
          actionId: id(actionId),
          versionId: id(versionId),
          against: ["ID", against],
        }),
      ),
    diff: (actionId) => compared(ask("query", "actionDiff", DIFF_FIELDS, { actionId: id(actionId) })),
    export: () => ask("query", "exportActions", `{ format actions { ${CONFIGURATION_FIELDS} ${LIMIT_FIELDS} } }`, {}),
    import: (document, dryRun) =>
      ask(
        "mutation",
        "importActions",
        "{ dryRun created updated { name fields } unchanged faults { index name status error } }",
        {
          document: ["ImportDocumentInput", document],
          dryRun: ["Boolean", dryRun],
        },
      ),
    run: (nameOrId, payload, call) =>
      ask("mutation", "runAction", "{ runId }", { nameOrId: ["ID!", nameOrId], payload: ["JSON", payload] }, call),
    runWithResult: async (nameOrId, payload, call) => {
      const values = { nameOrId: ["ID!", nameOrId], payload: ["JSON", payload] } as Record<string, [string, unknown]>;
      const outcome = await ask("mutation", "runActionWithResult", "{ runId result }", values, call);
      return outcome.status === "OK" ? { ...outcome, value: outcome.value.result } : outcome;
    },
  };
}

export const API_CLIENTS = [
  ["REST", createRestApiClient],
  ["GraphQL", createGraphqlApiClient],
] as const;
