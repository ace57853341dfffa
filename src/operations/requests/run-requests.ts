/**
 * Sends a run's requests to other services (`Svc.App.V3.Actions.request`). Checks the action's allowed origins, rejects URLs with secrets,
 * and masks the secrets of bindings in responses.
 */
import type { Logger } from "pino";
import type { Environment } from "../../data/action-types.js";
import { retryInOutage } from "../../data/outage-retry.js";
import type { ConsoleLine, EncodedOutgoingResponse, SendOutgoingRequest } from "../../engine/browser/run.js";
import {
  OutgoingError,
  type OutgoingHop,
  type OutgoingHopSummary,
  type OutgoingRequestContext,
  type OutgoingRequestSender,
  type OutgoingResponse,
  RunRequestBudget,
} from "../../engine/outgoing.js";
import type { SecretScanner } from "../../engine/secret-scan.js";
import { ActionError } from "../../errors.js";
import { normalizeOrigin } from "../../rules/integration-origins.js";
import {
  parseRequestedOrigin,
  parseRequestOptions,
  type RequestDescription,
  RequestOptionsError,
} from "../../rules/request-options.js";
import { decodeResponseText, maskResponse } from "./responses.js";

/** Data about one outgoing request of a run, which Studio shows on the page of the run. */
export interface OutgoingRequestRecord extends Omit<OutgoingHopSummary, "origin"> {
  /** `host:port` to which the request was sent. */
  host: string;
}

/** The credential that the service adds to requests to one origin. */
export interface RequestCredential {
  authorize(hop: OutgoingHop): Promise<OutgoingHop>;
  /** Replaces an access token that the origin has rejected. Returns false if no other token is available. */
  replaceToken(): Promise<boolean>;
}

export interface RequestingRun {
  appId: number;
  environment: Environment;
  origins: readonly string[];
  /** Returns the key of a setting whose value the URL contains; null if the URL contains no secret. */
  findInUrl(url: string): Promise<string | null>;
  printLine(line: ConsoleLine): void;
  onHostContacted(host: string): void;
  /** Starts a trace span for a request. The returned function ends the span. */
  startRequestSpan(origin: string, method: string): (facts: OutgoingHopSummary) => void;
}

export interface SecretBindings {
  /** Returns the credential of a binding. @throws OutgoingError POLICY if the app has no binding of this setting for the origin */
  getCredential(appId: number, key: string, origin: string): Promise<RequestCredential>;
  /** Returns the scanner that finds and masks the secret values in responses; null if the app has no bindings. */
  getScanner(appId: number): Promise<SecretScanner | null>;
}

const FAILED_BEFORE_SENDING_MESSAGE = "the service could not send this request";
const FAILED_AFTER_SENDING_MESSAGE =
  "the service failed after it began to send this request, so the other server may have processed it";
const UNAUTHORIZED_STATUS = 401;
const HTTPS_PORT = "443";
const HTTP_PORT = "80";

function formatHostAndPort(origin: string): string {
  const { hostname, port, protocol } = new URL(origin);
  return `${hostname.replace(/^\[(.*)\]$/, "$1")}:${port || (protocol === "https:" ? HTTPS_PORT : HTTP_PORT)}`;
}

/**
 * Returns the error in the form in which the run's code receives it. If the options contain an origin, the message contains this origin.
 */
function encodeFailure(options: unknown, code: string, message: string): EncodedOutgoingResponse {
  const origin = parseRequestedOrigin(options);
  const containsOrigin = origin === null || message.includes(origin);
  return { head: JSON.stringify([0, code, containsOrigin ? message : `${message} (request to ${origin})`]), text: "" };
}

/** Rejects a URL that contains a secret. @param key setting whose value the URL contains; null for none @throws OutgoingError POLICY */
function refuseSecretInUrl(key: string | null, origin: string): void {
  if (key === null) return;
  const message = `the URL of a request to ${origin} holds the value of the setting ${key}; send the value in a header or in the body`;
  throw new OutgoingError("POLICY", message, origin);
}

/** Parses the options of a request. Hostile code can send any text. @throws RequestOptionsError */
function parseOptionsText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new RequestOptionsError("POLICY", "the options must be JSON");
  }
}

export class RunRequestSender {
  constructor(private readonly options: { sender: OutgoingRequestSender; bindings: SecretBindings; log: Logger }) {}

  private async encodeResponse(
    run: RequestingRun,
    response: OutgoingResponse,
    type: RequestDescription["responseType"],
    signal: AbortSignal,
  ): Promise<EncodedOutgoingResponse> {
    const scanner = await retryInOutage(signal, () => this.options.bindings.getScanner(run.appId));
    const text = type === "bytes" ? null : decodeResponseText(response);
    const maskedResponse = scanner && (await maskResponse(scanner, response, text));
    for (const key of maskedResponse?.keys ?? []) {
      const warning = `The response of ${response.origin} held the value of the setting ${key}, which was masked`;
      run.printLine({ level: "warn", at: Date.now(), text: warning });
    }
    const { headers } = maskedResponse ?? response;
    const body = maskedResponse ? maskedResponse.body : (text ?? response.body);
    const isBytes = type === "bytes";
    return {
      head: JSON.stringify([response.status, headers, isBytes ? "bytes" : "text", response.origin]),
      text: isBytes ? Buffer.from(body).toString("base64") : String(body),
    };
  }

  private async performRequest(
    run: RequestingRun,
    scope: Pick<OutgoingRequestContext, "budget" | "signal" | "onHop">,
    description: RequestDescription,
  ): Promise<EncodedOutgoingResponse> {
    const { sender, bindings } = this.options;
    const { signal } = scope;
    const { url, auth, headers, responseType, ...request } = description;
    const origin = normalizeOrigin(url)!;
    if (!run.origins.includes(origin)) {
      const message = `${origin} is not allowed for this action: add it to the action's integrationOrigins`;
      throw new OutgoingError("POLICY", message, origin);
    }
    refuseSecretInUrl(await retryInOutage(signal, () => run.findInUrl(url.href)), origin);
    const credential =
      auth === null ? null : await retryInOutage(signal, () => bindings.getCredential(run.appId, auth, origin));
    const sendOnce = () =>
      sender.send(
        { ...request, url, headers },
        {
          ...scope,
          pool: String(run.appId),
          mayUseOrigin: (requested) => run.origins.includes(requested),
          originOf: normalizeOrigin,
          // Checks each redirect again, because its URL can contain a secret that was set after the run's start.
          checkRedirect: async (next, limit) =>
            refuseSecretInUrl(await retryInOutage(limit, () => run.findInUrl(next.href)), origin),
          ...(credential && {
            authorize: (hop: OutgoingHop, limit: AbortSignal) => retryInOutage(limit, () => credential.authorize(hop)),
          }),
          hasCredential: credential !== null || headers["authorization"] !== undefined,
        },
      );
    let response = await sendOnce();
    // The server has not processed a request whose credential it rejected. So the request can be sent again with any HTTP method.
    const isRejected = response.status === UNAUTHORIZED_STATUS;
    if (isRejected && credential && (await retryInOutage(signal, () => credential.replaceToken())))
      response = await sendOnce();
    return this.encodeResponse(run, response, responseType, signal);
  }

  /** Returns the function that sends the requests of one run, and the list to which this function adds each sent request. */
  beginRun(run: RequestingRun): { send: SendOutgoingRequest; records: OutgoingRequestRecord[] } {
    const budget = new RunRequestBudget();
    const records: OutgoingRequestRecord[] = [];
    const onHop = (origin: string, method: string) => {
      const host = formatHostAndPort(origin);
      run.onHostContacted(host);
      const endHop = run.startRequestSpan(origin, method);
      return (facts: OutgoingHopSummary) => {
        const { origin: _, durationMs, ...rest } = facts;
        records.push({ host, ...rest, durationMs: Math.round(durationMs) });
        endHop(facts);
      };
    };
    let hasLoggedError = false;
    const send: SendOutgoingRequest = async (text, signal) => {
      let options: unknown = null;
      let isSent = false;
      const onRequestHop = (origin: string, method: string) => {
        isSent = true;
        return onHop(origin, method);
      };
      try {
        options = parseOptionsText(text);
        if (run.environment !== "server") {
          const message = "Svc.App.V3.Actions.request is available in server actions only";
          return encodeFailure(options, "INTEGRATION_UNAVAILABLE", message);
        }
        return await this.performRequest(run, { budget, signal, onHop: onRequestHop }, parseRequestOptions(options));
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof OutgoingError || error instanceof RequestOptionsError) {
          return encodeFailure(options, error.code, error.message);
        }
        // Logs one error of each run, because the code of the run can cause any number of errors.
        if (!hasLoggedError && !(error instanceof ActionError))
          this.options.log.error({ err: error, appId: run.appId, isSent }, "a request of a run failed in the service");
        hasLoggedError = true;
        return encodeFailure(
          options,
          "TRANSPORT",
          isSent ? FAILED_AFTER_SENDING_MESSAGE : FAILED_BEFORE_SENDING_MESSAGE,
        );
      }
    };
    return { send, records };
  }
}
