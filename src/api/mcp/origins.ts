/**
 * Checks which web pages may use /mcp. This prevents DNS rebinding, in which a page of another site makes its own host name point to this
 * machine.
 */
import { isIP } from "node:net";

const LOOPBACK_HOSTS = ["localhost", "127.0.0.1", "[::1]"];

function parseOrigin(origin: string): URL | null {
  try {
    return new URL(origin);
  } catch {
    return null;
  }
}

/**
 * True for programs (no `Origin`), for pages of this machine, and for pages at PUBLIC_URL. If PUBLIC_URL is not set, also true for pages at
 * the service's IP address. A host name is then not enough, because a rebound host name looks like the service's own.
 */
export function isAllowedMcpOrigin(
  { origin, host }: { origin?: string | undefined; host?: string | undefined },
  publicUrl: string | null,
): boolean {
  if (origin === undefined) return true;
  const url = parseOrigin(origin);
  if (!url || url.origin === "null") return false;
  if (LOOPBACK_HOSTS.includes(url.hostname)) return true;
  if (publicUrl !== null) return url.origin === new URL(publicUrl).origin;
  return isIP(url.hostname.replace(/^\[|\]$/g, "")) !== 0 && url.host === host;
}
