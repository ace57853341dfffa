/** Finds the positions in an action's code that a stack trace names. Pure function. */

export interface StackPosition {
  /** Text of the position, such as `book-seat.js:12:7`. */
  text: string;
  /** Index in the stack trace at which the text begins. */
  index: number;
  line: number;
  column: number;
}

/** Matches a code position in a stack trace. The look-behind excludes URLs, and names of files that only end with the action's name. */
const CODE_POSITION_PATTERN = /(?<![\w./-])([\w-]+)\.js:(\d+):(\d+)/g;

/** Returns the positions in the code of the action with this name, in the order of the stack trace. */
export function findCodePositions(stack: string, actionName: string | undefined): StackPosition[] {
  return [...stack.matchAll(CODE_POSITION_PATTERN)]
    .filter(([, name]) => name === actionName)
    .map(({ 0: text, 2: line, 3: column, index }) => ({ text, index, line: Number(line), column: Number(column) }));
}
