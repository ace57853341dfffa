/**
 * Matches request paths with the patterns of HTTP triggers, such as `orders/:id`. Read this file if a URL does not reach
 * its action. The server and the browser execute it.
 */

export const PATH_SEGMENTS_MAX = 8;
export const SEGMENT_MAX_CHARACTERS = 200;
/** Maximum length of a segment in a request. It is longer than in a pattern, because the segment may be a parameter's value. */
export const VALUE_MAX_CHARACTERS = 1_024;
/** First segment of the paths at which draft versions of HTTP triggers are called. */
export const DRAFT_SEGMENT = "draft";

const PARAMETER_SEGMENT = /^:([A-Za-z_]\w{0,63})$/;
/** Letters and digits of all scripts, and punctuation that a URL segment may contain unescaped. */
const LITERAL_SEGMENT = /^[\p{L}\p{M}\p{N}._~!$&'()*+,;=@-]+$/u;

const isDots = (segment: string): boolean => segment === "." || segment === "..";

const isLiteral = (segment: string): boolean =>
  segment.length <= SEGMENT_MAX_CHARACTERS &&
  LITERAL_SEGMENT.test(segment) &&
  !isDots(segment) &&
  segment.normalize("NFC") === segment;

/** Returns the fault of a pattern as the rest of a sentence ("must have …"); null if it is valid. */
export function patternFault(path: unknown): string | null {
  if (typeof path !== "string") return "must be a string of one to eight segments such as orders/:id";
  const segments = path.split("/");
  if (path === "" || segments.length > PATH_SEGMENTS_MAX) return `must have 1 to ${PATH_SEGMENTS_MAX} segments`;
  if (segments.includes("")) return "must have no empty segment, and no slash at its start or end";
  const faultySegment = segments.find((segment) => !PARAMETER_SEGMENT.test(segment) && !isLiteral(segment));
  if (faultySegment !== undefined) {
    return `must have segments of letters, digits and ._~!$&'()*+,;=@- of at most ${SEGMENT_MAX_CHARACTERS} characters, or :name`;
  }
  if (segments[0] === DRAFT_SEGMENT) return `must not begin with ${DRAFT_SEGMENT}, where drafts are served`;
  const names = segments.flatMap((segment) => PARAMETER_SEGMENT.exec(segment)?.[1] ?? []);
  return new Set(names).size === names.length ? null : "must not contain two parameters with the same name";
}

/** Returns the shape of a pattern: the pattern without parameter names. Patterns with the same shape match the same paths. */
export const patternShapeOf = (path: string): string =>
  path
    .split("/")
    .map((segment) => (PARAMETER_SEGMENT.test(segment) ? ":" : segment))
    .join("/");

/** Splits a request's path into segments, encoded (`raw`) and decoded; null if no pattern can match. Ignores one trailing slash. */
export function segmentsOf(rawPath: string): { raw: string[]; decoded: string[] } | null {
  const raw = rawPath.replace(/\/$/, "").split("/");
  // The path of a trigger with the authorization "secret" has one more segment than the pattern: the secret.
  if (raw.length > PATH_SEGMENTS_MAX + 1) return null;
  try {
    const decoded = raw.map(decodeURIComponent);
    const isUsable = decoded.every(
      (segment) =>
        segment !== "" && segment.length <= VALUE_MAX_CHARACTERS && !isDots(segment) && !segment.includes("\0"),
    );
    return isUsable ? { raw, decoded } : null;
  } catch {
    return null;
  }
}

/**
 * Returns all shapes of patterns that match the segments, the most specific first. The first segment counts most, and a
 * literal is more specific than a parameter.
 */
export function matchingShapesOf(decoded: readonly string[]): string[] {
  if (decoded.length === 0 || decoded.length > PATH_SEGMENTS_MAX) return [];
  return decoded.reduce<string[]>(
    (shapes, segment, index) => {
      const literal = segment.normalize("NFC");
      const choices = isLiteral(literal) ? [literal, ":"] : [":"];
      return shapes.flatMap((shape) => choices.map((choice) => (index === 0 ? choice : `${shape}/${choice}`)));
    },
    [""],
  );
}

/** Returns the values of the pattern's parameters in the decoded segments of a path. */
export function paramsOf(path: string, decoded: readonly string[]): Record<string, string> {
  const names = path.split("/").map((segment) => PARAMETER_SEGMENT.exec(segment)?.[1]);
  return Object.fromEntries(names.flatMap((name, index) => (name === undefined ? [] : [[name, decoded[index]!]])));
}
