/** Serves /oauth/* and the OAuth metadata: programs get tokens by OAuth 2.1, and people approve the programs on a page of the service. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Logger } from "pino";
import { ActionError } from "../../errors.js";
import { checkTokenResource, type OAuthServer } from "../../operations/oauth/oauth.js";
import { GRANT_TYPES, type OauthClient } from "../../operations/oauth/oauth-clients.js";
import { OauthError } from "../../operations/oauth/oauth-failure.js";
import type { GrantDecision } from "../../operations/oauth/oauth-grants.js";
import { TOKEN_SCOPES, type TokenScope } from "../../rules/access.js";
import { describeValue, isObject } from "../../rules/describe-value.js";
import { createFlatShape, NO_FIELDS, refuseUnknownFields } from "../../rules/unknown-fields.js";
import { createErrorReply } from "../error-reply.js";
import { getPathPrefix } from "../page-origin.js";
import type { BuiltPageSender } from "../web-assets.js";

const FORM_MAX_BYTES = 32 * 1024;
const DECISION_SHAPE = createFlatShape(["allow", "appId", "scopes"]);

export interface OauthOptions {
  oauth: OAuthServer;
  pages: BuiltPageSender;
  /** The service's address for people and browsers, without a trailing slash. */
  baseUrl: string;
  /** Returns the service's address for the sender of this request, without a trailing slash. */
  findServiceAddress: (request: FastifyRequest) => string;
  log: Logger;
}

type FormFields = Record<string, string | undefined>;

/**
 * Reads the parameters of a form or a query string.
 * @throws OauthError if a parameter occurs twice (RFC 6749, section 3.1)
 */
function parseParameters(text: string): FormFields {
  const input: FormFields = {};
  for (const [name, value] of new URLSearchParams(text)) {
    if (Object.hasOwn(input, name))
      throw new OauthError("invalid_request", `the parameter "${name}" must occur only once in the request`);
    if (value !== "") input[name] = value;
  }
  return input;
}

const getQueryString = ({ url }: FastifyRequest): string =>
  url.slice(url.indexOf("?") < 0 ? url.length : url.indexOf("?") + 1);

function sendOauthError(reply: FastifyReply, error: unknown, log: Logger): FastifyReply {
  reply.header("cache-control", "no-store");
  if (error instanceof OauthError) {
    const http = error.code === "invalid_client" ? 401 : 400;
    return reply.code(http).send({ error: error.code, error_description: error.message });
  }
  const { http, headers, body } = createErrorReply(error, log);
  const code = http === 429 ? "slow_down" : http < 500 ? "invalid_request" : "server_error";
  return reply
    .code(http)
    .headers(headers)
    .send({ ...body, error: code, error_description: body.error });
}

function createServerMetadata(base: string) {
  return {
    issuer: base,
    authorization_endpoint: `${base}/oauth/authorize`,
    token_endpoint: `${base}/oauth/token`,
    registration_endpoint: `${base}/oauth/register`,
    revocation_endpoint: `${base}/oauth/revoke`,
    device_authorization_endpoint: `${base}/oauth/device_authorization`,
    scopes_supported: TOKEN_SCOPES,
    response_types_supported: ["code"],
    response_modes_supported: ["query"],
    grant_types_supported: GRANT_TYPES,
    token_endpoint_auth_methods_supported: ["none"],
    revocation_endpoint_auth_methods_supported: ["none"],
    code_challenge_methods_supported: ["S256"],
    authorization_response_iss_parameter_supported: true,
    service_documentation: `${base}/docs/reference/agents`,
  };
}

const createResourceMetadata = (base: string, resource: string) => ({
  resource,
  authorization_servers: [base],
  scopes_supported: TOKEN_SCOPES,
  bearer_methods_supported: ["header"],
  resource_name: "Svc App Actions",
  resource_documentation: `${base}/docs/reference/agents`,
});

/**
 * Registers a metadata document at a well-known address and at addresses below it. All other addresses below it get 404.
 * @param paths key: rest of the address after `wellKnownPath`; value: path of the resource that the document there describes
 */
function registerMetadataDocument(
  app: FastifyInstance,
  wellKnownPath: string,
  paths: ReadonlyMap<string, string>,
  createDocument: (request: FastifyRequest, path: string) => object,
): void {
  const sendDocument = (request: FastifyRequest, reply: FastifyReply) => {
    const [address = ""] = request.url.split("?", 1);
    const path = paths.get(address.slice(wellKnownPath.length).replace(/\/$/, ""));
    if (path === undefined) return reply.callNotFound();
    return reply.header("cache-control", "no-store").send(createDocument(request, path));
  };
  for (const route of [wellKnownPath, `${wellKnownPath}/*`]) app.get(route, sendDocument);
}

/**
 * Registers the metadata documents. If PUBLIC_URL has a path, clients put the well-known address between its host and this path (RFC 8414,
 * section 3.1; RFC 9728, section 3.1). The proxy must forward these requests unchanged. The same documents are at the well-known addresses
 * without this path.
 */
function registerMetadata(app: FastifyInstance, { findServiceAddress, baseUrl }: OauthOptions): void {
  const prefix = getPathPrefix(baseUrl);
  // This document has no address that ends with /mcp. There, it would have to describe another issuer (RFC 8414, section 3.3).
  const serverPaths = new Map([prefix, ""].map((path) => [path, ""]));
  registerMetadataDocument(app, "/.well-known/oauth-authorization-server", serverPaths, (request) =>
    createServerMetadata(findServiceAddress(request)),
  );
  const resourcePaths = new Map([prefix, ""].flatMap((path) => ["", "/mcp"].map((suffix) => [path + suffix, suffix])));
  registerMetadataDocument(app, "/.well-known/oauth-protected-resource", resourcePaths, (request, path) => {
    const base = findServiceAddress(request);
    return createResourceMetadata(base, base + path);
  });
}

/** Registers the routes that programs call without a credential. */
function registerClientRoutes(app: FastifyInstance, { oauth, findServiceAddress, log }: OauthOptions): void {
  const sendParserError = (error: unknown, _request: FastifyRequest, reply: FastifyReply): void => {
    sendOauthError(reply, error, log);
  };
  app.register(async (plugin) => {
    plugin.setErrorHandler(sendParserError);
    plugin.removeAllContentTypeParsers();
    plugin.addContentTypeParser("application/x-www-form-urlencoded", { parseAs: "string" }, (_request, body, done) =>
      done(null, body),
    );
    plugin.addContentTypeParser("*", async ({ headers }: FastifyRequest) => {
      const type = describeValue(headers["content-type"]);
      throw new ActionError(
        "REQUEST_INVALID",
        `the body must be a form, with Content-Type: application/x-www-form-urlencoded (got ${type})`,
      );
    });
    const registerFormRoute = (
      path: string,
      createResponse: (input: FormFields, request: FastifyRequest) => Promise<object>,
    ) =>
      plugin.post(path, { bodyLimit: FORM_MAX_BYTES }, async (request, reply) => {
        try {
          oauth.limits.countRequest(request.context.address);
          const input = parseParameters(typeof request.body === "string" ? request.body : "");
          checkTokenResource(input, findServiceAddress(request));
          const body = await createResponse(input, request);
          return await reply.header("cache-control", "no-store").send(body);
        } catch (error) {
          return sendOauthError(reply, error, log);
        }
      });
    registerFormRoute("/oauth/token", (input) => oauth.handleTokenRequest(input).then((answer) => ({ ...answer })));
    registerFormRoute("/oauth/revoke", (input) => oauth.handleRevocationRequest(input).then(() => ({})));
    registerFormRoute("/oauth/device_authorization", async (input, request) => {
      const { deviceCode, userCode, expiresIn, interval } = await oauth.startDevice(input);
      const page = `${findServiceAddress(request)}/oauth/device`;
      return {
        device_code: deviceCode,
        user_code: userCode,
        verification_uri: page,
        verification_uri_complete: `${page}?user_code=${userCode}`,
        expires_in: expiresIn,
        interval,
      };
    });
  });

  app.post("/oauth/register", { bodyLimit: FORM_MAX_BYTES, errorHandler: sendParserError }, async (request, reply) => {
    try {
      oauth.limits.countRequest(request.context.address);
      const client = await oauth.clients.register(request.body, request.context.address);
      return await reply.code(201).header("cache-control", "no-store").send(toRegistrationResponse(client));
    } catch (error) {
      return sendOauthError(reply, error, log);
    }
  });
}

const toRegistrationResponse = ({ id, name, redirectUris, grantTypes }: OauthClient) => ({
  client_id: id,
  client_name: name,
  redirect_uris: redirectUris,
  grant_types: grantTypes,
  response_types: grantTypes.includes("authorization_code") ? ["code"] : [],
  token_endpoint_auth_method: "none",
});

/** Person who allows or denies a program access. `decidingTokenId` is null if the person used a session instead of a token. */
type DecidingPerson = Pick<GrantDecision, "personId" | "credentialId" | "decidingTokenId">;

/**
 * Returns the person who sent the request.
 * @throws UNAUTHORIZED without a credential; FORBIDDEN if the credential does not belong to a person, or is a provisional session
 */
function getDecidingPerson({ context: { caller } }: FastifyRequest): DecidingPerson {
  if (!caller) throw new ActionError("UNAUTHORIZED");
  if ((caller.kind !== "editor" && caller.kind !== "admin") || caller.personId === null)
    throw new ActionError("FORBIDDEN");
  if (caller.session === "provisional") throw new ActionError("FORBIDDEN");
  const { personId, credentialId, session } = caller;
  return { personId, credentialId, decidingTokenId: session === undefined ? credentialId : null };
}

/**
 * Reads the person's decision from the body; null if the person denied the program.
 * @throws REQUEST_INVALID
 */
function readDecision(body: unknown, decider: DecidingPerson): GrantDecision | null {
  if (!isObject(body))
    throw new ActionError("REQUEST_INVALID", `the body must be a JSON object (got ${describeValue(body)})`);
  const { allow, appId, scopes } = body;
  if (allow === false) {
    refuseUnknownFields(body, DECISION_SHAPE);
    return null;
  }
  const isValid =
    allow === true &&
    Number.isSafeInteger(appId) &&
    Array.isArray(scopes) &&
    scopes.every((scope) => (TOKEN_SCOPES as readonly unknown[]).includes(scope));
  if (!isValid)
    throw new ActionError(
      "REQUEST_INVALID",
      '"allow" must be true or false; if it is true, "appId" must be the ID of an app, and "scopes" an array of scopes',
    );
  refuseUnknownFields(body, DECISION_SHAPE);
  return { ...decider, appId: appId as number, scopes: [...new Set(scopes as TokenScope[])] };
}

/**
 * Reads the query parameter `app`: ID of the app to put first in the list of apps. For a person with many apps, the list does not contain
 * all.
 */
function readAppToList({ query }: FastifyRequest): number | null {
  const { app } = query as Record<string, unknown>;
  return typeof app === "string" && /^[1-9]\d{0,14}$/.test(app) ? Number(app) : null;
}

const toActionError = (error: unknown): unknown =>
  error instanceof OauthError ? new ActionError("REQUEST_INVALID", error.message) : error;

/** Registers the routes on which a signed-in person allows or denies a program access. */
function registerApprovalRoutes(app: FastifyInstance, { oauth, pages, findServiceAddress }: OauthOptions): void {
  const requireDecider = (request: FastifyRequest): DecidingPerson => {
    const decider = getDecidingPerson(request);
    oauth.limits.countDecision(decider.personId);
    return decider;
  };

  const sendConsentPage = (request: FastifyRequest, reply: FastifyReply) => {
    const { caller } = request.context;
    const isPerson = caller?.kind === "editor" || caller?.kind === "admin";
    return pages.sendPage(reply.header("vary", "Cookie"), isPerson ? "consent" : "sign-in");
  };
  app.get("/oauth/authorize", sendConsentPage);
  app.get("/oauth/device", sendConsentPage);
  app.get("/oauth/programs", sendConsentPage);

  /**
   * Reads the authorization request of a program from the query string.
   * @throws OauthError
   */
  const readAuthorization = (request: FastifyRequest) => {
    const input = parseParameters(getQueryString(request));
    checkTokenResource(input, findServiceAddress(request));
    return oauth.readAuthorization(input);
  };
  app.get("/oauth/consent", async (request, reply) => {
    const { personId } = requireDecider(request);
    try {
      const { client, redirectUri, scopes } = await readAuthorization(request);
      const appId = readAppToList(request);
      const apps = await oauth.listGrantableApps(personId, appId);
      const { protocol, host } = new URL(redirectUri);
      // Returns the host only for http and https. In a URL with another scheme, the program can choose any text as host, such as the name
      // of another site. For these URLs, returns the scheme.
      const to = protocol === "https:" || protocol === "http:" ? host : protocol;
      return await reply.header("cache-control", "no-store").send({ client: client.name, to, scopes, appId, apps });
    } catch (error) {
      throw toActionError(error);
    }
  });
  app.post("/oauth/consent", async (request, reply) => {
    const decision = readDecision(request.body, requireDecider(request));
    try {
      const authorization = await readAuthorization(request);
      const redirectTo = await oauth.authorize(authorization, decision, findServiceAddress(request));
      return await reply.header("cache-control", "no-store").send({ redirectTo });
    } catch (error) {
      throw toActionError(error);
    }
  });
  app.get<{ Params: { userCode: string } }>("/oauth/devices/:userCode", async (request, reply) => {
    const { personId } = requireDecider(request);
    const pendingDevice = await oauth.devices.find(request.params.userCode.slice(0, 20));
    if (!pendingDevice)
      throw new ActionError(
        "NOT_FOUND",
        "no program waits for a sign-in with this code; check the code, or start the sign-in in the program again",
      );
    const { clientName, scopes } = pendingDevice;
    const appId = readAppToList(request) ?? pendingDevice.appId;
    const apps = await oauth.listGrantableApps(personId, appId);
    return reply.header("cache-control", "no-store").send({ client: clientName, to: null, scopes, appId, apps });
  });
  app.post<{ Params: { userCode: string } }>("/oauth/devices/:userCode", async (request, reply) => {
    const decision = readDecision(request.body, requireDecider(request));
    await oauth.decideDevice(request.params.userCode.slice(0, 20), decision);
    return reply.header("cache-control", "no-store").send({ status: decision ? "ALLOWED" : "REFUSED" });
  });
  app.get("/oauth/grants", async (request, reply) =>
    reply
      .header("cache-control", "no-store")
      .send({ grants: await oauth.grants.listGrantsOf(getDecidingPerson(request).personId) }),
  );
  app.delete<{ Params: { id: string } }>("/oauth/grants/:id", async (request) => {
    const { personId } = getDecidingPerson(request);
    refuseUnknownFields(request.body, NO_FIELDS);
    const id = /^[1-9]\d{0,14}$/.test(request.params.id) ? Number(request.params.id) : 0;
    await oauth.grants.revoke(personId, id);
    return { status: "GRANT_ENDED" };
  });
}

export function registerOauth(app: FastifyInstance, options: OauthOptions): void {
  registerMetadata(app, options);
  registerClientRoutes(app, options);
  registerApprovalRoutes(app, options);
}
