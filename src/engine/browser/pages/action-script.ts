/**
 * The author's code as it is evaluated in every mode: as the body of a function, so that its own names never meet the globals of a page. Read
 * this before you change how stacks are shown: the head stands before the first line of the code.
 */

const HEAD = "(()=>{";
/** The line break ends a comment in the last line of the code. */
const TAIL = '\n;return typeof execute==="undefined"?undefined:execute})';

/** Source text of a function that evaluates the code and returns what it defined as `execute`. */
export function functionOf({ name, source }: { name: string; source: string }): string {
  // A hashbang comment is allowed only at the start of a script.
  return `${HEAD}${source.replace(/^#!/, "//")}${TAIL}\n//# sourceURL=${name}`;
}

/** Corrects the columns of the code's first line in a stack, or in a text that contains one. */
export function withoutHead(text: string, name: string): string {
  const place = `${name}:1:`;
  if (!text.includes(place)) return text;
  return text
    .split(place)
    .map((part, at) => (at === 0 ? part : withoutHeadColumn(part)))
    .join(place);
}

function withoutHeadColumn(text: string): string {
  const digits = /^\d{1,9}/.exec(text)?.[0];
  if (digits === undefined || Number(digits) <= HEAD.length) return text;
  return `${Number(digits) - HEAD.length}${text.slice(digits.length)}`;
}
