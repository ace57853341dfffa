/** Scripts at addresses elsewhere, fetched once: https alone, public hosts alone. Keeps nothing. */
import { type CheckedConnections, NotConnectedError, TooLargeError } from "../../engine/checked-connections.js";
import { ActionError } from "../../errors.js";
import { unresolved } from "../../rules/packages.js";
import { AWAY_RETRY_SECONDS } from "./registry.js";

const SCRIPT_MAX_BYTES = 5 * 1024 * 1024;
const ANSWER_LIMIT_MS = 8_000;

function judge(url: URL): void {
  if (url.protocol !== "https:") throw new NotConnectedError("it leads to an address without TLS", true);
}

/** @throws DEPENDENCY_UNRESOLVED; 503 where the host is away */
export async function fetchScript(
  connections: CheckedConnections,
  dependency: string,
  url: string,
  limitMs = ANSWER_LIMIT_MS,
): Promise<Buffer> {
  const headers = { accept: "text/javascript, application/javascript, */*;q=0.5" };
  const refuse = (reason: string, retryAfter?: number) =>
    unresolved(dependency, `cannot be fetched: ${reason}`, retryAfter);
  try {
    const { status, body } = await connections.download(new URL(url), {
      headers,
      maxBytes: SCRIPT_MAX_BYTES,
      limitMs,
      judge,
    });
    if (status >= 500 || status === 429) throw refuse(`its host answers ${status}`, AWAY_RETRY_SECONDS);
    if (status !== 200) throw refuse(`its host answers ${status}`);
    return body;
  } catch (error) {
    if (error instanceof TooLargeError) throw refuse(error.message);
    if (error instanceof NotConnectedError)
      throw refuse(error.message, error.forbidden ? undefined : AWAY_RETRY_SECONDS);
    if (error instanceof ActionError) throw error;
    throw refuse("its host does not answer", AWAY_RETRY_SECONDS);
  }
}
