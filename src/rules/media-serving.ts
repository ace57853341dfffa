/** Determines headers of a response with a file: content type, download or not, and range. */

/** Content types that a browser can show safely, because they contain no code. Files of all other types are downloaded. */
const SHOWN_TYPES = new Set([
  ...["image/jpeg", "image/png", "image/apng", "image/gif", "image/webp", "image/avif"],
  ...["audio/mpeg", "audio/mp4", "audio/x-m4a", "audio/wav", "audio/ogg", "audio/opus", "audio/flac", "audio/aac"],
  ...["video/mp4", "video/webm", "video/ogg", "video/quicktime", "text/plain"],
]);

/** Matches content types that a browser may execute as a page or script. Such files are sent as application/octet-stream. */
const ACTIVE_TYPE =
  /^(?:text\/(?!plain$)|application\/(?:xhtml|(?:pdf|x-shockwave-flash|wasm|x-mimearchive)$)|image\/svg|multipart\/|message\/)/;
const ACTIVE_ENDS = ["xml", "json", "javascript"];

const isActive = (contentType: string): boolean =>
  ACTIVE_TYPE.test(contentType) ||
  (contentType.startsWith("application/") && ACTIVE_ENDS.some((ending) => contentType.endsWith(ending)));

/**
 * Content type of SVG, which is sent unchanged, because `<img>` accepts no other. If a browser opens the file itself, it
 * downloads the file, so that no script in the file runs.
 */
const SVG = "image/svg+xml";

export interface ServingHeaders {
  contentType: string;
  /** `inline` or `attachment`. */
  disposition: "inline" | "attachment";
}

/** @param isReadable false for a picture that could not be decoded. It is downloaded, because it may not be a picture. */
export function servingOf(contentType: string, isReadable: boolean): ServingHeaders {
  const isShown = SHOWN_TYPES.has(contentType) && (isReadable || !contentType.startsWith("image/"));
  if (contentType === "text/plain") return { contentType: "text/plain; charset=utf-8", disposition: "inline" };
  const sent = contentType !== SVG && isActive(contentType) ? "application/octet-stream" : contentType;
  return { contentType: sent, disposition: isShown ? "inline" : "attachment" };
}

/** Returns the header Content-Disposition (RFC 6266) with the full name, and with a name in ASCII for old clients. */
export function contentDisposition(disposition: ServingHeaders["disposition"], name: string): string {
  const asciiName = name.replaceAll(/[^\x20-\x7e]|["\\%]/g, "_");
  const encodedName = encodeURIComponent(name.toWellFormed()).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `${disposition}; filename="${asciiName}"; filename*=UTF-8''${encodedName}`;
}

/** True if the header If-None-Match or If-Range contains the tag. The prefix `W/` is ignored (RFC 9110). */
export function containsTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return header
    .split(",")
    .some((listedTag) => listedTag.trim() === "*" || listedTag.trim().replace(/^W\//, "") === tag);
}

/**
 * Parses the header Range (RFC 9110, section 14). Returns null if the whole content is sent, also for several ranges;
 * "none" if the range starts after the end of the content.
 */
export function rangeIn(header: string | undefined, bytes: number): { start: number; end: number } | "none" | null {
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
