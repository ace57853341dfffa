/** Reads the requests in docs/reference/rest-routes.md, and orders them so that each can succeed after the earlier ones. */
import { readPage } from "../docs/pages.js";

export interface ShownRequest {
  route: string;
  method: string;
  /** Path of the route, with its parameters in braces. */
  path: string;
  /** Query string that begins with `?`; "" for none. */
  query: string;
  body: unknown;
}

const MEDIA = "/v1/apps/{appId}/media/files/{id}";
const AUTH = "/v1/auth";
const SESSION = "/v1/apps/{appId}/session";

/** Routes of rest-routes.md that the test does not request. Each key names a thing that the test lacks for these requests. */
const UNSENT_ROUTES: Readonly<Record<string, readonly string[]>> = {
  "a process that runs actions, as in test/docs": [
    "POST /v3/apps/{appId}/actions/{nameOrId}/runWithResult",
    "POST /v3/apps/{appId}/runs/{runId}/replay",
    "GET /v3/apps/{appId}/runs/{runId}/console",
    "GET /v3/apps/{appId}/runs/{runId}",
  ],
  "a language model, as in test/api/ai.test.ts": ["completions", "embeddings", "image", "transcribe"].map(
    (name) => `POST /v1/apps/{appId}/ai/${name}`,
  ),
  "the session or the link of a person, as in test/accounts": [
    ...["setup", "sign-in", "invitations/accept", "reset/confirm"].map((name) => `POST ${AUTH}/${name}`),
    ...["passkeys", "passkeys/sign-in", "passkeys/registration-options"].map((name) => `POST ${AUTH}/${name}`),
    ...["sessions", "passkeys", "passkeys/{passkeyId}", "identities"].map((name) => `GET ${AUTH}/${name}`),
    ...["sessions", "sessions/{sessionId}", "passkeys/{passkeyId}", "identities/{identityId}"].map(
      (name) => `DELETE ${AUTH}/${name}`,
    ),
    `PUT ${AUTH}/account`,
    "GET /v1/admin/administrators",
    ...["PUT", "DELETE"].map((method) => `${method} /v1/admin/administrators/{userId}`),
  ],
  "the session of a page, as in test/web/own-pages.test.ts": [
    ...["POST", "PUT", "DELETE"].map((method) => `${method} ${SESSION}`),
    `POST ${SESSION}/verify`,
    "POST /v1/apps/{appId}/visitors",
  ],
  "a file, as in docs/reference/media.md": [
    ...["GET", "PUT", "DELETE"].map((method) => `${method} ${MEDIA}`),
    ...[`POST ${MEDIA}/link`, `GET ${MEDIA}/accessRules`, `PUT ${MEDIA}/accessRules`],
  ],
  "keys of a browser, as in test/api/requests.test.ts": ["POST", "DELETE"].map(
    (method) => `${method} /v1/apps/{appId}/push/subscriptions`,
  ),
  "a host on the internet": [
    "POST /v1/apps/{appId}/git/pull",
    "PUT /v1/apps/{appId}/git",
    "DELETE /v1/apps/{appId}/git",
    "POST /v1/apps/{appId}/secret-bindings/test",
    "GET /v3/apps/{appId}/packages/declarations",
  ],
  "another kind of action, as in test/http and test/api/client-runs.test.ts": [
    "POST /v3/apps/{appId}/actions/{id}/rotate-secret",
    "POST /v3/apps/{appId}/actions/{id}/clientRuns/started",
    "POST /v3/apps/{appId}/actions/{id}/clientRuns",
  ],
  "an earlier state, as in docs/reference/stages.md and test/data-sources": [
    "POST /v1/apps/{appId}/promotions",
    "POST /v1/apps/{appId}/promotions/{promotionId}/rollback",
    "DELETE /v1/apps/{appId}/stages/{stageAppId}",
    "POST /v1/apps/{appId}/communicate/messages/{messageId}/decide",
    "POST /v1/apps/{appId}/data-sources/{ds}/commit",
    "POST /v1/apps/{appId}/data-sources/{ds}/versions/{versionId}/restore",
  ],
};

/** Returns a rank for the order of requests: later requests need what earlier requests create or publish. */
const rankOf = ({ method, path }: ShownRequest): number => {
  if (method === "DELETE") return path.startsWith("/v1/organizations") ? 7 : 6;
  if (path.endsWith("/unpublish")) return 5;
  if (method === "GET") return 3;
  if (path.endsWith("/diff") || path.endsWith("/restore")) return 4;
  if (path.endsWith("/{appId}/publish")) return 1;
  return method === "POST" && !/\{\w+\}\/\w+$/.test(path.replace("/{appId}/", "/")) ? 0 : 2;
};

const depthOf = ({ path }: ShownRequest): number => path.split("/").length;

/** Reads the requests of rest-routes.md. `body` is undefined if a request has none, or shows `{…}` instead of fields. */
function readRequests(): ShownRequest[] {
  const sections = readPage("docs/reference/rest-routes.md").split("\n### ").slice(1);
  return sections.map((section) => {
    const [route = ""] = section.split("\n");
    const [method = "", path = ""] = route.split(" ");
    const [, shown = "", text = ""] = /```text\n\S+ (\S+)\n(.*)\n/.exec(section)!;
    const body = text === "" || text.includes("{…}") ? undefined : JSON.parse(text);
    return { route, method, path, query: new URL(shown).search, body };
  });
}

/**
 * Returns the requests in an order in which they can be sent to one app. Deletions are last, those of the deepest paths first.
 * @throws Error if UNSENT_ROUTES contains a route that the page does not show
 */
export function requestsInOrder(): ShownRequest[] {
  const all = readRequests();
  const excluded = Object.values(UNSENT_ROUTES).flat();
  const unknown = excluded.filter((route) => !all.some((request) => request.route === route));
  if (unknown.length > 0) throw new Error(`the page does not show ${unknown.join(", ")}`);
  const sent = all.filter(({ route }) => !excluded.includes(route));
  return sent.toSorted((a, b) => rankOf(a) - rankOf(b) || (rankOf(a) >= 6 ? depthOf(b) - depthOf(a) : 0));
}

const NAMED_PARAMETERS: Readonly<Record<string, string>> = {
  ds: "Talks",
  nameOrId: "greet",
  name: "preset",
  columns: "Title",
};

/** IDs from earlier responses, by the path of the request or by the name of a parameter. */
export type KnownIds = Map<string, number>;

/** Returns the URL path of a request. NAMED_PARAMETERS or IDs of earlier responses replace its parameters. */
export const addressOf = ({ path, query }: ShownRequest, ids: KnownIds): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string, at: number) =>
    String(NAMED_PARAMETERS[name] ?? ids.get(name) ?? ids.get(path.slice(0, at - 1)) ?? 0),
  ) + query;

/**
 * Stores the first ID in the responses to a path, for later requests whose paths begin with this path. Stores the IDs of runs and users
 * under the names of their parameters, `runId` and `userId`.
 */
export function storeId(ids: KnownIds, { path }: ShownRequest, body: Record<string, unknown> | null): void {
  const runId = body?.["runId"];
  if (typeof runId === "number") ids.set("runId", runId);
  const values = body === null ? [] : ([body, ...Object.values(body)].flat() as ({ id?: unknown } | null)[]);
  const id = values.find((value) => typeof value?.id === "number")?.id as number | undefined;
  if (id === undefined || ids.has(path)) return;
  ids.set(path, id);
  if (path === "/v1/admin/users") ids.set("userId", id);
}
