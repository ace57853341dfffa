/**
 * Creates `Svc.App.V3.Actions.response`, the response of an HTTP trigger that a run returns. Uses only JavaScript itself, because it also
 * runs in server runs without a browser page.
 */
import { findResponseFault } from "../../rules/http/response.js";
import { toPlainObject } from "./plain-object.js";
import type { ResponseOptions } from "./request-types.js";

const BASE64_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** Encodes bytes in base64. Server runs without a browser page have no `btoa`. */
function encodeBase64(bytes: Uint8Array): string {
  const parts: string[] = [];
  for (let offset = 0; offset < bytes.length; offset += 3) {
    const [a = 0, b, c] = [bytes[offset], bytes[offset + 1], bytes[offset + 2]];
    const bits = (a << 16) | ((b ?? 0) << 8) | (c ?? 0);
    parts.push(
      BASE64_DIGITS[bits >> 18]!,
      BASE64_DIGITS[(bits >> 12) & 63]!,
      b === undefined ? "=" : BASE64_DIGITS[(bits >> 6) & 63]!,
      c === undefined ? "=" : BASE64_DIGITS[bits & 63]!,
    );
  }
  return parts.join("");
}

function toBytes(body: unknown): Uint8Array | null {
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  return ArrayBuffer.isView(body) ? new Uint8Array(body.buffer, body.byteOffset, body.byteLength) : null;
}

/** True for a `Blob` or `File`. Server runs without a browser page have no `Blob` to compare with. */
const isBlob = (body: unknown): boolean => /^\[object (?:Blob|File)\]$/.test(Object.prototype.toString.call(body));

/**
 * Creates the function `response`.
 * @param markProperty in a server run, the name of the property in which the result contains the response; the service recognizes a
 *   response by this property. Elsewhere, null: the result is the response itself.
 */
export function createResponseFunction(markProperty: string | null) {
  return (options: ResponseOptions = {}): object => {
    const headers = toPlainObject(options?.headers) as ResponseOptions["headers"];
    const fault = findResponseFault(options) ?? findResponseFault({ headers });
    if (fault !== null) throw new TypeError(`Svc.App.V3.Actions.response: ${fault}`);
    const { status, body, redirect } = options;
    if (isBlob(body))
      throw new TypeError(
        "Svc.App.V3.Actions.response: body must be text, bytes or JSON (got a Blob); pass the result of its method arrayBuffer()",
      );
    const bytes = toBytes(body);
    const response = {
      ...(status !== undefined && { status }),
      ...(headers !== undefined && { headers: { ...headers } }),
      ...(redirect !== undefined && { redirect }),
      ...(bytes ? { base64: encodeBase64(bytes) } : body !== undefined && { body }),
    };
    return markProperty === null ? response : { [markProperty]: response };
  };
}
