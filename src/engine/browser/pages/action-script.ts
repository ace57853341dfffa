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
  const [first = "", ...parts] = text.split(position);
  const correctColumn = (digits: string) =>
    Number(digits) > SCRIPT_HEAD.length ? String(Number(digits) - SCRIPT_HEAD.length) : digits;
  return [first, ...parts.map((part) => part.replace(/^\d{1,9}/, correctColumn))].join(position);
}
