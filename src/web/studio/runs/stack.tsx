/** An error with its stack, whose places in the action's own code lead to the line. */
import { Fragment } from "react";
import type { ScriptError } from "../shared/model.js";
import { hrefOf } from "../shell/place.js";

/** Of `at execute (book-seat.js:12:7)`: the place alone. */
const PLACE = /(?<![\w-])([\w-]+)\.js:(\d+):(\d+)/g;

/** A stack begins with the error as a rule; then it says it all. */
function textOf({ name, message, stack }: ScriptError): string {
  return stack.includes(message) ? stack : `${name}: ${message}\n\n${stack}`;
}

export interface StackProps {
  error: ScriptError;
  appId: number;
  /** The master of the action that ran; null where it is not known. */
  action: { id: number; name: string } | null;
}

export function Stack({ error, appId, action }: StackProps) {
  const text = textOf(error);
  const parts: (string | { line: string; column: string; text: string })[] = [];
  let end = 0;
  for (const found of text.matchAll(PLACE)) {
    const [place, name, line, column] = found;
    if (name !== action?.name) continue;
    parts.push(text.slice(end, found.index), { line: line!, column: column!, text: place });
    end = found.index + place.length;
  }
  parts.push(text.slice(end));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and so must be within reach of the keyboard
    <pre className="result failed stack" tabIndex={0}>
      {parts.map((part, at) =>
        typeof part === "string" ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: parts of one text, which never move
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
