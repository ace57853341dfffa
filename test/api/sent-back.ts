/** Reads the resource of a PUT route, and sends the response back as the body of the PUT request. */
import { ROUTES } from "../../src/api/rest/routes.js";
import type { TestService } from "../harness/service.js";
import { BODY_SAMPLES, fillIds, type Ids } from "./body-samples.js";
import { REST_CHANGES } from "./conditional-samples.js";

// biome-ignore lint/suspicious/noExplicitAny: each route returns another type
type Json = any;

export const PUT_ROUTES: readonly string[] = ROUTES.filter(({ method }) => method === "PUT").map(
  ({ path }) => `PUT ${path}`,
);

/** Routes whose resource cannot be sent back as it was read, each with the reason. */
export const NEVER_SENT_BACK: Readonly<Record<string, string>> = {
  "PUT /v1/apps/:appId/settings/secrecy": "The body marks keys as secret. A read returns the values of settings.",
};

/** Paths that return the resource of a PUT route, if neither the path of the route nor a parent path returns the resource. */
const READ_PATHS: Readonly<Record<string, string>> = {
  "PUT /v1/admin/apps/:appId": "/v1/apps",
  "PUT /v1/auth/account": "/v1/auth/session",
};

/** Functions that change the read resource before it is sent back, by route. Other resources are sent back unchanged. */
const CHANGED_BODIES: Readonly<Record<string, (read: Json) => Json>> = {
  // The service ignores the field `settings` in this body.
  "PUT /v1/apps/:appId": (app) => ({ ...app, settings: { a: 1 } }),
  // The body is the payload of the preset, without the other fields of the preset.
  "PUT /v3/apps/:appId/actions/:actionId/presets/:name": ({ payload }) => payload,
  // The body must contain the field `locale`, which a session does not return.
  "PUT /v1/apps/:appId/session": (session) => ({ ...session, locale: "en" }),
};

const CHANGING_FIELDS = ["updatedAt", "lastSeenAt"];

function withoutTimes(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutTimes);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).filter(([name]) => !CHANGING_FIELDS.includes(name));
  return Object.fromEntries(fields.map(([name, inner]) => [name, withoutTimes(inner)]));
}

/** Returns the path that reads the resource of a PUT route: from READ_PATHS, the same path, or the nearest parent path with a GET route. */
function readPathOf(route: string): string {
  let path = READ_PATHS[route] ?? route.slice("PUT ".length);
  while (path !== "" && !ROUTES.some((read) => read.method === "GET" && read.path === path)) {
    path = path.slice(0, path.lastIndexOf("/"));
  }
  return path;
}

/** Returns the resource in a response: the item of a list with this ID or name, the value of the only field, or all fields. */
function resourceIn({ status: _, ...answer }: Json, isInList: boolean, key: string): Json {
  const items = Object.values<Json>(answer).filter(Array.isArray).flat();
  if (isInList)
    return items.find(({ id, name, user }) => [id, name, user?.id].some((identifier) => String(identifier) === key));
  const [only, ...more] = Object.values<Json>(answer);
  return more.length === 0 && typeof only === "object" && only !== null && !Array.isArray(only) ? only : answer;
}

/**
 * Creates the resource of the route by the sample body, and sends the resource back as the service returned it.
 * Returns the response, and the resource before and after that request, without times.
 */
export async function sendBackRead(service: TestService, route: string, sampleIds: Ids) {
  const sample = await (REST_CHANGES[route] ?? REST_CHANGES[route.replace("PUT", "DELETE")])?.make(service);
  const ids: Ids = { ...sampleIds, ...sample?.ids };
  const isAccount = route.endsWith("/auth/account");
  const as = isAccount ? String(sampleIds["session"]) : route.endsWith("/session") ? "viewer" : "admin";
  const fill = (path: string) => path.replace(/:(\w+)/g, (_, name: string) => String(ids[name]));
  const put = (body: unknown) => service.rest("PUT", fill(route.slice("PUT ".length)), { as, body });

  const sent = BODY_SAMPLES[route.replace(/:(\w+)/g, "{$1}")];
  const made = await put(fillIds(sent?.body, ids));
  if (made.http >= 300) throw new Error(`${route} with its sample body: ${made.http} ${JSON.stringify(made.body)}`);
  const readPath = readPathOf(route);
  const isInList = readPath.split(":").length < route.split(":").length || route in READ_PATHS;
  const key = fill(route.slice(route.lastIndexOf("/") + 1));
  const read = async () => {
    const { http, body } = await service.rest("GET", fill(readPath), { as });
    const resource = http === 200 && resourceIn(body, isInList && !isAccount, key);
    if (!resource) throw new Error(`GET ${readPath} does not return ${key}: ${JSON.stringify(body)}`);
    return isAccount ? (resource.user ?? resource) : resource;
  };
  const before = await read();
  const answer = await put((CHANGED_BODIES[route] ?? ((body) => body))(before));
  return { answer, before: withoutTimes(before), after: withoutTimes(await read()) };
}
