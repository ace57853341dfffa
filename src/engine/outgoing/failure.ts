/** Errors of requests to other services. Their messages contain the origin of the request, but no path, header or body. */

/**
 * `POLICY`: the request is not allowed (options, origin, address, header, redirect). `LIMIT`: too many requests or too much data.
 * `TIMEOUT`: too slow. `UNSUPPORTED`: unknown encoding or charset. `TRANSPORT`: DNS, TCP, TLS or decoding failed.
 */
export type OutgoingErrorCode = "POLICY" | "LIMIT" | "TIMEOUT" | "UNSUPPORTED" | "TRANSPORT";

export class OutgoingError extends Error {
  override readonly name = "OutgoingError";

  constructor(
    readonly code: OutgoingErrorCode,
    message: string,
    /** Origin of the request, in normal form; null if the request has no origin. */
    readonly origin: string | null = null,
  ) {
    super(message);
  }
}

/** Codes of the system or a library, such as ECONNRESET. Authors see only codes, because error messages may quote the request. */
const ERROR_CODE_PATTERN = /^[A-Z][A-Z0-9_]{1,60}$/;

/** Returns the code of a transport error, such as ECONNREFUSED or CERT_HAS_EXPIRED; "connection failed" if it has none. */
export function getTransportErrorCode(error: unknown): string {
  const list = error instanceof AggregateError ? error.errors : [error];
  for (const item of list as (NodeJS.ErrnoException | undefined)[]) {
    for (const { code } of [item, item?.cause as NodeJS.ErrnoException | undefined].filter((cause) => cause != null)) {
      if (typeof code === "string" && ERROR_CODE_PATTERN.test(code)) return code;
    }
  }
  return "connection failed";
}
