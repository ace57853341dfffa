/** Wraps an action's code in a function, so that its names never conflict with globals. Corrects the stack traces of this code. */

const SCRIPT_HEAD = "(()=>{";
/** Starts with a line break, because the last line of the code may be a comment. */
const SCRIPT_TAIL = '\n;return typeof execute==="undefined"?undefined:execute})';

export function wrapInFunction({ name, source }: { name: string; source: string }): string {
  // A hashbang comment is allowed only at the start of a script, so it becomes an ordinary comment.
  return `${SCRIPT_HEAD}${source.replace(/^#!/, "//")}${SCRIPT_TAIL}\n//# sourceURL=${name}`;
}

/** In the stack traces of `text`, corrects the columns of the code's first line, which SCRIPT_HEAD has shifted. */
export function correctFirstLineStackColumns(text: string, name: string): string {
  const position = `${name}:1:`;
  if (!text.includes(position)) return text;
  return text
    .split(position)
    .map((part, index) => (index === 0 ? part : correctLeadingColumn(part)))
    .join(position);
}

function correctLeadingColumn(text: string): string {
  const digits = /^\d{1,9}/.exec(text)?.[0];
  if (digits === undefined || Number(digits) <= SCRIPT_HEAD.length) return text;
  return `${Number(digits) - SCRIPT_HEAD.length}${text.slice(digits.length)}`;
}
