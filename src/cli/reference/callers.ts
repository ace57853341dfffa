/**
 * Finds out who may call each GraphQL field and REST route. Reads the operations that each resolver's code names, and looks them up in the
 * access table.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ACCESS_TABLE, type CallerRole, type Operation, TOKEN_SCOPES, type TokenScope } from "../../rules/access.js";
import { formatInlineCode } from "./tables.js";

/** Operations of the resolver methods that check their operations in a helper. The code of these methods does not name the operations. */
const INDIRECT_OPERATIONS: Readonly<Record<string, readonly Operation[]>> = {
  runAction: ["runAction", "runDraft"],
  runActionWithResult: ["runAction", "runDraft"],
  callModel: ["useAi"],
  createAiCompletion: ["useAi"],
  createAiEmbeddings: ["useAi"],
  createAiImage: ["useAi"],
  createAiTranscription: ["useAi"],
  administrators: ["manageAdministrators"],
  addAdministrator: ["manageAdministrators"],
  removeAdministrator: ["manageAdministrators"],
  createApp: ["administrate"],
  createUser: ["administrate"],
  invitations: ["manageOrganization"],
  createInvitation: ["manageOrganization"],
  revokeInvitation: ["manageOrganization"],
  authorize: ["signInAppUser"],
  verify: ["verifyAppUser"],
  verifyAppUser: ["verifyAppUser"],
  createStage: ["writeStages"],
  createStageOf: ["writeStages"],
  find: ["readEntries", "removeEntries"],
  dataSourceEntries: ["readEntries"],
  deleteEntries: ["removeEntries"],
  mediaAccessRules: ["readMedia"],
  authorizeAppUser: ["signInAppUser"],
  runConsoleAdded: ["readLogs"],
  runConsoleLinesAdded: ["readLogs"],
  removeStage: ["writeStages"],
  getOwnRules: ["readMedia"],
  setOwnRules: ["writeMedia"],
  listAllFiles: ["readMedia"],
  changeFile: ["writeMedia"],
  changeFolder: ["writeMedia"],
};

const isOperation = (name: string): name is Operation => Object.hasOwn(ACCESS_TABLE, name);

/**
 * Returns the operations that each resolver method checks, by the name of the method.
 * @param root folder of the checkout
 * @throws Error if INDIRECT_OPERATIONS names a method that no resolver has
 */
export function readOperationsByField(root: string): ReadonlyMap<string, readonly Operation[]> {
  const operationsByName = new Map<string, readonly Operation[]>(Object.entries(INDIRECT_OPERATIONS));
  const files = globSync("src/api/graphql/*-resolver.ts", { cwd: root });
  const resolverTexts = files.map((file) => readFileSync(join(root, file), "utf8"));
  const missingMethods = Object.keys(INDIRECT_OPERATIONS).filter(
    (name) => !resolverTexts.some((text) => text.includes(` ${name}(`)),
  );
  if (missingMethods.length > 0)
    throw new Error(
      `callers.ts contains the methods ${missingMethods.join(", ")}, but no resolver has a method of this name; correct callers.ts`,
    );
  for (const resolverText of resolverTexts) {
    const methodTexts = resolverText.split(/\n {2}@(?:Query|Mutation|Subscription)\(/);
    for (const method of methodTexts.slice(1)) {
      const name = /\n {2}(?:async )?(\w+)\(/.exec(method)?.[1];
      // Keeps only the resolver method, because other methods of the class can follow it.
      const [text = ""] = method.split("\n  }\n");
      const namedOperations = [...text.matchAll(/"(\w+)"/g)].map(([, word]) => word!).filter(isOperation);
      if (name !== undefined && !operationsByName.has(name)) operationsByName.set(name, [...new Set(namedOperations)]);
    }
  }
  return operationsByName;
}

export const CALLERS_NOTE = `**Callers.** Each operation lists who may call it:

- *editors*, *admins*: people with this role or a higher one
- *readers*, *operators*: people with exactly this role. If people with a higher role may call an operation too, its list of callers also has *editors* or *admins*
- *API tokens*: [tokens of programs](../guides/api-token.md). To run an action, a token with the scope \`manage\` but not \`run\` must send \`copy\` with the value \`draft\`.
- *server actions*: the code of a run on the server
- *pages of the app*: pages of the live app or of the viewer (the editors' preview), with the token of the page`;

/** Operations that callers without a right on the app may use, if the app's access rules allow it. */
const ACCESS_RULE_OPERATIONS: readonly Operation[] = [
  "readEntries",
  "writeEntries",
  "removeEntries",
  "readMedia",
  "writeMedia",
  "removeMedia",
];

/** True if the app's access rules decide about callers without a right on the app. False for `tryAccess`, which only tests access rules. */
export const usesAccessRules = (field: string, operations: readonly Operation[]): boolean =>
  field !== "tryAccess" && operations.some((name) => ACCESS_RULE_OPERATIONS.includes(name));

const PEOPLE_ROLES: readonly CallerRole[] = ["reader", "operator", "editor", "admin", "owner"];

function selectListedRoles(callerRoles: readonly CallerRole[]): CallerRole[] {
  const roles = PEOPLE_ROLES.filter((role) => callerRoles.includes(role));
  // "editor" stands for editors, admins and owners, because each of them has all rights of an editor. Readers and operators are listed
  // separately.
  if (roles.includes("editor")) return [...roles.filter((role) => role === "reader" || role === "operator"), "editor"];
  return roles.slice(0, 1);
}

const joinWithOr = (items: readonly string[]): string =>
  items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} or ${items.at(-1)}`;

const TOKENS_WITHOUT_SCOPES = "API tokens created without scopes";

function describeApiTokens(scopes: readonly TokenScope[], allowsTokensWithoutScopes: boolean): string[] {
  if (allowsTokensWithoutScopes && scopes.length === TOKEN_SCOPES.length) return ["all API tokens"];
  if (allowsTokensWithoutScopes && scopes.length === 0) return [TOKENS_WITHOUT_SCOPES];
  const tokensWithScopes = `API tokens with the scope ${joinWithOr(scopes.map(formatInlineCode))}`;
  return [
    ...(scopes.length > 0 ? [tokensWithScopes] : []),
    ...(allowsTokensWithoutScopes ? [TOKENS_WITHOUT_SCOPES] : []),
  ];
}

const ROLE_NAMES: Partial<Record<CallerRole, string>> = {
  reader: "readers",
  operator: "operators",
  editor: "editors",
  admin: "admins",
  owner: "owners",
  administrator: "administrators of the service",
};

export function describeCallers(operations: readonly Operation[]): string {
  const rules = operations.map((name) => ACCESS_TABLE[name]);
  const callerRoles = [...new Set(rules.flatMap((rule) => [...rule.callers] as CallerRole[]))];
  const scopes = [...new Set(rules.flatMap((rule) => ("scopes" in rule ? [...rule.scopes] : [])))];
  const listedRoles = selectListedRoles(callerRoles);
  const roles =
    listedRoles.length > 0 || !callerRoles.includes("administrator") ? listedRoles : (["administrator"] as const);
  const isPage = callerRoles.includes("live") || callerRoles.includes("viewer");
  return [
    ...roles.map((role) => ROLE_NAMES[role] ?? role),
    ...describeApiTokens(scopes, callerRoles.includes("api")),
    ...(callerRoles.includes("task") ? ["server actions"] : []),
    ...(isPage ? ["pages of the app"] : []),
  ].join(", ");
}
