/** Sends requests to the service's API with one credential. Errors have a message for the person at the command line. */

export class ExampleError extends Error {}

const MAX_RATE_LIMIT_WAIT_MS = 60_000;

/** Returns the message for an error response, with advice if the credential is invalid or its permissions are too low. */
function createErrorText(http, answer, { url, appId, from }) {
  const [refused] = answer.errors ?? [];
  const { status, error } = refused ? { status: refused.extensions?.status, error: refused.message } : answer;
  if (http === 401)
    return `the service at ${url} rejects this token (from ${from}); use the token of an editor of this service`;
  if (http === 403 || status === "FORBIDDEN")
    return `this token (from ${from}) does not permit changes of app ${appId}; use the token of an editor or administrator`;
  return `the service returned ${http} ${status ?? ""}: ${error ?? "no reason"}`;
}

function getErrorReason(error) {
  const { code, message } = error.cause ?? error;
  return code ?? message;
}

/**
 * @param {{url: string, appId: number, token: string, from: string, say: (text: string) => void}} target
 * @returns `call(method, path, body)`, which resolves to the response's JSON; `path` is appended to the service's URL
 */
export function createApi(target) {
  const { url, token, say } = target;

  async function sendOnce(method, path, body) {
    const headers = { "Auth-token": token, ...(body && { "Content-Type": "application/json" }) };
    const response = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) }).catch((error) => {
      throw new ExampleError(
        `no service responds at ${url} (${getErrorReason(error)}); start it with npm start, or pass another address by --url`,
      );
    });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json");
    if (!isJson)
      throw new ExampleError(
        `${url} is not this service: the response to ${method} ${path} has the status ${response.status} and no JSON`,
      );
    return { http: response.status, seconds: Number(response.headers.get("retry-after")), answer: JSON.parse(text) };
  }

  return async function call(method, path, body) {
    for (let waitedMs = 0; ; ) {
      const { http, seconds, answer } = await sendOnce(method, path, body);
      if (http < 300 && !answer.errors) return answer;
      const pauseMs = seconds * 1_000;
      if ((http !== 429 && http !== 503) || !(pauseMs > 0) || waitedMs + pauseMs > MAX_RATE_LIMIT_WAIT_MS)
        throw new ExampleError(createErrorText(http, answer, target));
      say(`the service asks to wait ${seconds} s (${answer.status})`);
      waitedMs += pauseMs;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  };
}
