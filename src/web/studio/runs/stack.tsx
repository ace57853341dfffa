/** Shows the error of a run with its stack. A position in the action's code is a link to this line in the editor. */
import { Fragment } from "react";
import type { ScriptError } from "../shared/model.js";
import { createHref } from "../shell/studio-route.js";

/** Matches a code position in a line of a stack, such as `at execute (book-seat.js:12:7)`. */
const CODE_POSITION_PATTERN = /(?<![\w-])([\w-]+)\.js:(\d+):(\d+)/g;

/** Returns the text of the error: its stack, preceded by its name and message unless the stack already contains the message. */
function getErrorText({ name, message, stack }: ScriptError): string {
  return stack.includes(message) ? stack : `${name}: ${message}\n\n${stack}`;
}

export interface ErrorStackProps {
  error: ScriptError;
  appId: number;
  /** ID of the action's draft, and the action's name. If null, the action is unknown, and code positions are not links. */
  action: { id: number; name: string } | null;
}

export function ErrorStack({ error, appId, action }: ErrorStackProps) {
  const text = getErrorText(error);
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
      {parts.map((part, index) =>
        typeof part === "string" ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a text never change their order
          <Fragment key={index}>{part}</Fragment>
        ) : (
          <a
            // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a text never change their order
            key={index}
            href={createHref({
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
