/** Determines how a response sends a file: its content type, whether browsers show or download it, and the range of bytes. */

/** Content types that browsers can show safely, because they contain no code. Browsers download files of all other types. */
const INLINE_TYPES = new Set([
  ...["image/jpeg", "image/png", "image/apng", "image/gif", "image/webp", "image/avif"],
  ...[
    "audio/mpeg",
    "audio/mp4",
    "audio/x-m4a",
    "audio/wav",
    "audio/ogg",
    "audio/ogg; codecs=opus",
    "audio/flac",
    "audio/aac",
  ],
  ...["video/mp4", "video/webm", "video/ogg", "video/quicktime", "text/plain"],
]);

/**
 * Matches content types that a browser may execute as a page or script. The service sends these files, except SVG, as
 * application/octet-stream.
 */
const EXECUTABLE_TYPE_PATTERN =
  /^(?:text\/(?!plain$)|application\/(?:xhtml|(?:pdf|x-shockwave-flash|wasm|x-mimearchive)$)|image\/svg|multipart\/|message\/)/;
const EXECUTABLE_TYPE_ENDINGS = ["xml", "json", "javascript"];

const isExecutableType = (contentType: string): boolean =>
  EXECUTABLE_TYPE_PATTERN.test(contentType) ||
  (contentType.startsWith("application/") && EXECUTABLE_TYPE_ENDINGS.some((ending) => contentType.endsWith(ending)));

/** SVG keeps its type, because `<img>` needs it. But it is sent as a download, so that opening the file's URL runs no script in it. */
const SVG_TYPE = "image/svg+xml";

export interface MediaResponseHeaders {
  contentType: string;
  disposition: "inline" | "attachment";
}

/**
 * Returns the content type with which the service sends a media file, and if browsers show or download the file.
 * @param isReadable false if the service could not decode the picture; then browsers download the file
 */
export function getMediaResponseHeaders(contentType: string, isReadable: boolean): MediaResponseHeaders {
  const isShown = INLINE_TYPES.has(contentType) && (isReadable || !contentType.startsWith("image/"));
  if (contentType === "text/plain") return { contentType: "text/plain; charset=utf-8", disposition: "inline" };
  const sent = contentType !== SVG_TYPE && isExecutableType(contentType) ? "application/octet-stream" : contentType;
  return { contentType: sent, disposition: isShown ? "inline" : "attachment" };
}

/** Returns the value of the header Content-Disposition (RFC 6266): the full file name, and an ASCII name for old clients. */
export function createContentDisposition(disposition: MediaResponseHeaders["disposition"], name: string): string {
  const asciiName = name.replaceAll(/[^\x20-\x7e]|["\\%]/g, "_");
  const encodedName = encodeURIComponent(name.toWellFormed()).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `${disposition}; filename="${asciiName}"; filename*=UTF-8''${encodedName}`;
}

/**
 * True if the header If-None-Match contains this entity tag or `*`. Ignores the prefix `W/` (weak comparison, RFC 9110, section 13.1.2).
 * Do not use this function for If-Range, which needs a strong comparison.
 */
export function containsEntityTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return header
    .split(",")
    .some((listedTag) => listedTag.trim() === "*" || listedTag.trim().replace(/^W\//, "") === tag);
}

/**
 * Parses the header Range (RFC 9110, section 14). Returns null if the response must contain the whole file, also if several ranges are
 * requested. Returns "none" if the file has no byte in the range.
 * @param bytes size of the file
 */
export function parseRangeHeader(
  header: string | undefined,
  bytes: number,
): { start: number; end: number } | "none" | null {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? "");
  if (!match) return null;
  const [, first = "", last = ""] = match;
  if (first === "" && last === "") return null;
  if (first === "")
    return Number(last) === 0 || bytes === 0 ? "none" : { start: Math.max(0, bytes - Number(last)), end: bytes - 1 };
  const start = Number(first);
  const end = last === "" ? bytes - 1 : Math.min(Number(last), bytes - 1);
  if (last !== "" && Number(last) < start) return null;
  return start >= bytes ? "none" : { start, end };
}
