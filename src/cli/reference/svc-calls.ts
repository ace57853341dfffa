/** Reference page of every call of `Svc`: parameters, errors and an example, from the declarations of the client library. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { membersOf } from "./declarations.js";
import { NAMESPACES, type NamespaceExample } from "./svc-examples.js";
import { code, page, table } from "./tables.js";

/** Statuses with which every call to the service can reject. */
const EVERYWHERE_NOTE =
  "`UNAUTHORIZED`, `FORBIDDEN`, `REQUEST_INVALID`, `RATE_LIMIT_EXCEEDED`, `OVERLOADED`, `INTERNAL_ERROR` and `NETWORK_ERROR`";

/** The action's code of an example. */
export const actionOf = (example: string): string =>
  `async function execute() {\n${example.replaceAll(/^/gm, "  ")}\n}`;

function exampleText({ example, package: name }: NamespaceExample): string[] {
  if (example === null) return [];
  const dependencyNote = name === null ? "" : `, with \`"dependencies": ["${name}"]\``;
  return [
    `Example of an action${dependencyNote}:`,
    `\`\`\`js\n${actionOf(example.code)}\n\`\`\``,
    `It returns \`${JSON.stringify(example.result)}\`.`,
  ];
}

function sectionOf(namespace: NamespaceExample, sources: readonly string[]): string {
  const { path, type, package: name, about, errors, otherErrors, seeAlso } = namespace;
  const members = membersOf(sources, type).filter(({ signature }) =>
    /^\w+[(<]|^\w+: (?:\(|SendRequest)|^unread/.test(signature),
  );
  const rows = members.map(({ signature, comment }) => [code(`${path}.${signature}`), comment]);
  const errorsText = errors.length === 0 ? "" : `These calls can also fail with ${errors.map(code).join(", ")}. `;
  return [
    `## ${path}`,
    `${about} ${name === null ? "Needs no package." : `An action that uses it lists \`${name}\` in \`dependencies\`.`} How to use it: ${seeAlso}.`,
    table(["call", "what it does"], rows),
    `${errorsText}${otherErrors ?? ""}`.trim(),
    ...exampleText(namespace),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

export function svcCallsPage(root: string): string {
  const files = globSync("src/web/runtime/*-types.ts", { cwd: root }).sort();
  const sources = files.map((file) => readFileSync(join(root, file), "utf8"));
  const lead = `For authors of actions and pages. \`/client/svc.d.ts\` has the types that this page names.

If a call fails, its promise rejects with an \`Error\` that has \`status\` and \`error\`. Every call to the service can fail with ${EVERYWHERE_NOTE}. [Errors](errors.md) says what to do.`;
  return page(
    "Calls of Svc",
    lead,
    "the declarations of the client library",
    NAMESPACES.map((one) => sectionOf(one, sources)),
  );
}
