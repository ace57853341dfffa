/** Shows the error of a run with its stack. A position in the action's code is a link to this line in the editor. */
import { Fragment } from "react";
import type { ScriptError } from "../shared/model.js";
import { createHref } from "../shell/studio-route.js";
import { findCodePositions, type StackPosition } from "./code-positions.js";

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
  const parts: (string | StackPosition)[] = [];
  let textEnd = 0;
  for (const position of findCodePositions(text, action?.name)) {
    parts.push(text.slice(textEnd, position.index), position);
    textEnd = position.index + position.text.length;
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
              query: { line: String(part.line), column: String(part.column) },
            })}
          >
            {part.text}
          </a>
        ),
      )}
    </pre>
  );
}
