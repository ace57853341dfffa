/** Builds the table of all error statuses. It lists for each status the folders of the source code that use it. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { STATUS, type Status } from "../../errors.js";

/** Error statuses that no code uses, each with the reason why the API contract still contains the status. */
export const RESERVED_ERROR_STATUSES: Partial<Record<Status, string>> = {};

const PAGE_HEAD = `# Errors

Written by \`npm run schema\` from \`src/errors.ts\`. Every failure carries \`{status, error}\`: in REST as the body with the HTTP
code below, in GraphQL as \`extensions.status\` with \`message\`. The message here is the default; where it can, the service says
more: the field, what was expected and what came.

| status | HTTP | message | raised in |
| --- | --- | --- | --- |
`;

export function findFoldersByErrorStatus(root: string): Map<Status, string[]> {
  const files = globSync("src/**/*.ts", { cwd: root }).filter(
    (file) => file !== "src/errors.ts" && !/^src\/(web|cli)\//.test(file),
  );
  const texts = files.map((file) => ({ part: file.split("/")[1]!, text: readFileSync(join(root, file), "utf8") }));
  return new Map(
    (Object.keys(STATUS) as Status[]).map((status) => {
      const raisingParts = texts.filter(({ text }) => text.includes(`"${status}"`)).map(({ part }) => part);
      return [status, [...new Set(raisingParts)].sort()];
    }),
  );
}

export function createErrorTable(root: string): string {
  const raisingByStatus = findFoldersByErrorStatus(root);
  const lines = (Object.keys(STATUS) as Status[]).map((status) => {
    const { http, message } = STATUS[status];
    return `| \`${status}\` | ${http} | ${message} | ${raisingByStatus.get(status)?.join(", ") || RESERVED_ERROR_STATUSES[status] || "reserved"} |`;
  });
  return `${PAGE_HEAD}${lines.join("\n")}\n`;
}
