/**
 * Builds the reference page of every call of `Svc` (the client library): parameters, errors and an example. The source is the library's
 * type declarations.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type InterfaceMember, parseMembers } from "./declarations.js";
import { type NamespaceExample, SVC_NAMESPACES } from "./svc-examples.js";
import { buildTypesSection } from "./svc-types.js";
import { buildReferencePage, formatInlineCode, formatMarkdownTable } from "./tables.js";

const COMMON_ERRORS_NOTE =
  "`UNAUTHORIZED`, `FORBIDDEN`, `REQUEST_INVALID`, `RATE_LIMIT_EXCEEDED`, `OVERLOADED`, `INTERNAL_ERROR` and `NETWORK_ERROR`";

export const wrapInAction = (example: string): string =>
  `async function execute() {\n${example.replaceAll(/^/gm, "  ")}\n}`;

const formatExample = (
  path: string,
  title: string,
  { code: text, result, notes = [] }: { code: string; result: unknown; notes?: string[] },
): string[] => [
  `${title}:`,
  `\`\`\`js\n${text}\n\`\`\``,
  ...notes,
  `The example for ${formatInlineCode(path)} returns \`${JSON.stringify(result)}\`.`,
];

function formatNamespaceExamples({ path, example, pageExample, package: name }: NamespaceExample): string[] {
  const dependencyNote = name === null ? "" : `, with \`"dependencies": ["${name}"]\``;
  const notes = [
    ...(example?.calls
      ? [
          `The example for ${formatInlineCode(path)} calls the action \`${example.calls.name}\`, which has a \`manual\` trigger: \`${example.calls.code}\``,
        ]
      : []),
    ...(example?.resultNote ? [example.resultNote] : []),
  ];
  return [
    ...(example
      ? formatExample(path, `Example of a server action${dependencyNote}`, {
          ...example,
          code: wrapInAction(example.code),
          notes,
        })
      : []),
    ...(pageExample ? formatExample(path, "Example in a page, inside an async function", pageExample) : []),
  ];
}

export const parseNamespaceCalls = (sources: readonly string[], type: string): InterfaceMember[] =>
  parseMembers(sources, type).filter(({ signature }) => /^\w+[(<]|^\w+: (?:\(|SendRequest)|^unread/.test(signature));

function buildNamespaceSection(namespace: NamespaceExample, sources: readonly string[]): string {
  const { path, type, package: name, about, errors, otherErrors, seeAlso } = namespace;
  const rows = parseNamespaceCalls(sources, type).map(({ signature, comment }) => [
    formatInlineCode(`${path}.${signature}`),
    comment,
  ]);
  const errorsText =
    errors.length === 0
      ? ""
      : `The functions of ${formatInlineCode(path)} can fail with ${errors.map(formatInlineCode).join(", ")}, and with the [errors of every call](#errors-of-every-call). `;
  return [
    `## ${path}`,
    `${about} ${name === null ? `${formatInlineCode(path)} needs no package in \`dependencies\`.` : `An action that uses ${formatInlineCode(path)} lists \`${name}\` in \`dependencies\`.`} See also ${seeAlso}.`,
    formatMarkdownTable(["call", "what it does"], rows),
    `${errorsText}${otherErrors ?? ""}`.trim(),
    ...formatNamespaceExamples(namespace),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

export function readLibraryDeclarations(root: string): string[] {
  const files = globSync("src/web/runtime/*-types.ts", { cwd: root }).sort();
  return [...files, "src/data/action-types.ts", "src/data/media-types.ts"].map((file) =>
    readFileSync(join(root, file), "utf8"),
  );
}

export function buildSvcCallsPage(root: string): string {
  const sources = readLibraryDeclarations(root);
  const signatures = SVC_NAMESPACES.flatMap(({ type }) => parseNamespaceCalls(sources, type)).map(
    ({ signature }) => signature,
  );
  const describedTypes = new Set(SVC_NAMESPACES.map(({ type }) => type));
  const lead = `For authors of actions and pages. The section [types](#types) explains the types of arguments and results. Your code editor gets the types from \`/client/svc.d.ts\`.`;
  const errorsSection = `## Errors of every call

If a call fails, its promise rejects with an \`Error\`. The field \`status\` of this error is a code such as \`FORBIDDEN\`. The fields \`message\` and \`error\` contain the same text. Every call to the service can fail with ${COMMON_ERRORS_NOTE}. The page [errors](errors.md) says what to do in each case.`;
  return buildReferencePage("Calls of Svc", lead, "the declarations of the client library", [
    errorsSection,
    ...SVC_NAMESPACES.map((namespace) => buildNamespaceSection(namespace, sources)),
    buildTypesSection(signatures, sources, describedTypes),
  ]);
}
