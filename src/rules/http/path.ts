/** Matches request paths with path patterns of HTTP triggers, such as `orders/:id`. The server and the browser execute this file. */

export const PATH_SEGMENTS_MAX = 8;
export const PATH_PATTERN_SEGMENT_MAX_CHARACTERS = 200;
/** Maximum length of a segment of a request's path. It exceeds that of a pattern, because the segment may be the value of a parameter. */
export const REQUEST_PATH_SEGMENT_MAX_CHARACTERS = 1_024;
/** First path segment of requests that run an action's draft, not its live version. */
export const DRAFT_PATH_SEGMENT = "draft";

const PARAMETER_SEGMENT_PATTERN = /^:([A-Za-z_]\w{0,63})$/;
/** Matches a path segment of letters and digits in any script, and of punctuation that URLs may contain unescaped. */
const LITERAL_SEGMENT_PATTERN = /^[\p{L}\p{M}\p{N}._~!$&'()*+,;=@-]+$/u;

const isDotSegment = (segment: string): boolean => segment === "." || segment === "..";

const isLiteralSegment = (segment: string): boolean =>
  segment.length <= PATH_PATTERN_SEGMENT_MAX_CHARACTERS &&
  LITERAL_SEGMENT_PATTERN.test(segment) &&
  !isDotSegment(segment) &&
  segment.normalize("NFC") === segment;

/** Returns null for a valid pattern, otherwise the second half of an error message ("must have …"), which follows the field's name. */
export function findPathPatternFault(path: unknown): string | null {
  if (typeof path !== "string") return "must be a string of one to eight segments such as orders/:id";
  const segments = path.split("/");
  if (path === "" || segments.length > PATH_SEGMENTS_MAX) return `must have 1 to ${PATH_SEGMENTS_MAX} segments`;
  if (segments.includes("")) return "must have no empty segment, and no slash at its start or end";
  const faultySegment = segments.find(
    (segment) => !PARAMETER_SEGMENT_PATTERN.test(segment) && !isLiteralSegment(segment),
  );
  if (faultySegment !== undefined) {
    return `must have segments of letters, digits and ._~!$&'()*+,;=@- of at most ${PATH_PATTERN_SEGMENT_MAX_CHARACTERS} characters, or :name`;
  }
  if (segments[0] === DRAFT_PATH_SEGMENT) return `must not begin with ${DRAFT_PATH_SEGMENT}, where drafts are served`;
  const names = segments.flatMap((segment) => PARAMETER_SEGMENT_PATTERN.exec(segment)?.[1] ?? []);
  return new Set(names).size === names.length ? null : "must not contain two parameters with the same name";
}

/** Returns a pattern without the names of its parameters. Patterns with the same result match the same paths. */
export const getPathPatternShape = (path: string): string =>
  path
    .split("/")
    .map((segment) => (PARAMETER_SEGMENT_PATTERN.test(segment) ? ":" : segment))
    .join("/");

/**
 * Splits a request's path into segments, percent-encoded (`raw`) and decoded. Returns null if no pattern can match. Ignores a slash at the
 * end.
 */
export function splitPath(rawPath: string): { raw: string[]; decoded: string[] } | null {
  const raw = rawPath.replace(/\/$/, "").split("/");
  // The path has one segment more than the pattern if it ends with the trigger's secret, or begins with `draft`.
  if (raw.length > PATH_SEGMENTS_MAX + 1) return null;
  try {
    const decoded = raw.map(decodeURIComponent);
    const isUsable = decoded.every(
      (segment) =>
        segment !== "" &&
        segment.length <= REQUEST_PATH_SEGMENT_MAX_CHARACTERS &&
        !isDotSegment(segment) &&
        !segment.includes("\0"),
    );
    return isUsable ? { raw, decoded } : null;
  } catch {
    return null;
  }
}

/**
 * Returns all pattern shapes (`getPathPatternShape`) that match the segments, the most specific first. The first segment that differs
 * decides; a literal segment is more specific than a parameter.
 */
export function listMatchingPatternShapes(decoded: readonly string[]): string[] {
  if (decoded.length === 0 || decoded.length > PATH_SEGMENTS_MAX) return [];
  return decoded.reduce<string[]>(
    (shapes, segment, index) => {
      const literal = segment.normalize("NFC");
      const choices = isLiteralSegment(literal) ? [literal, ":"] : [":"];
      return shapes.flatMap((shape) => choices.map((choice) => (index === 0 ? choice : `${shape}/${choice}`)));
    },
    [""],
  );
}

/** Returns the values of the path's parameters by name. @param decoded segments of the requested path, after decoding */
export function extractPathParameters(path: string, decoded: readonly string[]): Record<string, string> {
  const names = path.split("/").map((segment) => PARAMETER_SEGMENT_PATTERN.exec(segment)?.[1]);
  return Object.fromEntries(names.flatMap((name, index) => (name === undefined ? [] : [[name, decoded[index]!]])));
}
