/** Shows an error with its stack. Positions in the action's code are links to the line in the editor. */
import { Fragment } from "react";
import type { ScriptError } from "../shared/model.js";
import { hrefOf } from "../shell/place.js";

/** Matches the position in a line such as `at execute (book-seat.js:12:7)`. */
const CODE_POSITION_PATTERN = /(?<![\w-])([\w-]+)\.js:(\d+):(\d+)/g;

/** Returns the text of the error. The stack usually begins with the message, and is then sufficient. */
function errorText({ name, message, stack }: ScriptError): string {
  return stack.includes(message) ? stack : `${name}: ${message}\n\n${stack}`;
}

export interface StackProps {
  error: ScriptError;
  appId: number;
  /** ID of the action's draft; null if it is unknown. */
  action: { id: number; name: string } | null;
}

export function Stack({ error, appId, action }: StackProps) {
  const text = errorText(error);
  const parts: (string | { line: string; column: string; text: string })[] = [];
  let textEnd = 0;
  for (const match of text.matchAll(CODE_POSITION_PATTERN)) {
    const [positionText, name, line, column] = match;
    if (name !== action?.name) continue;
    parts.push(text.slice(textEnd, match.index), { line: line!, column: column!, text: positionText });
    textEnd = match.index + positionText.length;
  }
  parts.push(text.slice(textEnd));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by the keyboard
    <pre className="result failed stack" tabIndex={0}>
      {parts.map((part, at) =>
        typeof part === "string" ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a text do not move
          <Fragment key={at}>{part}</Fragment>
        ) : (
          <a
            // biome-ignore lint/suspicious/noArrayIndexKey: as above
            key={at}
            href={hrefOf({
              appId,
              view: "actions",
              item: String(action!.id),
              query: { line: part.line, column: part.column },
            })}
          >
            {part.text}
          </a>
        ),
      )}
    </pre>
  );
}
