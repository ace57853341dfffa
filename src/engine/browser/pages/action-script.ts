/**
 * Wraps the action's code in a function in every mode, so that its names never conflict with the globals of a page. The head shifts the
 * columns of the first line in stacks.
 */

const SCRIPT_HEAD = "(()=>{";
/** Text after the action's code. Its line break ends a comment in the last line of that code. */
const SCRIPT_TAIL = '\n;return typeof execute==="undefined"?undefined:execute})';

/** Returns the source text of a function that evaluates the code and returns its `execute`. */
export function functionOf({ name, source }: { name: string; source: string }): string {
  // A hashbang comment is allowed only at the start of a script.
  return `${SCRIPT_HEAD}${source.replace(/^#!/, "//")}${SCRIPT_TAIL}\n//# sourceURL=${name}`;
}

/** Corrects the columns of the code's first line in a stack, or in a text that contains one. */
export function correctFirstLineColumns(text: string, name: string): string {
  const place = `${name}:1:`;
  if (!text.includes(place)) return text;
  return text
    .split(place)
    .map((part, index) => (index === 0 ? part : correctLeadingColumn(part)))
    .join(place);
}

function correctLeadingColumn(text: string): string {
  const digits = /^\d{1,9}/.exec(text)?.[0];
  if (digits === undefined || Number(digits) <= SCRIPT_HEAD.length) return text;
  return `${Number(digits) - SCRIPT_HEAD.length}${text.slice(digits.length)}`;
}
