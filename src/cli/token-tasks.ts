/** Tasks of `npm run token`: create a credential of any kind, list the credentials of an app, revoke one. The caller prints the result. */
import { CREDENTIAL_KINDS, type CredentialKind } from "../data/credential.js";
import { type Db, rows } from "../data/database.js";
import { StartError } from "../errors.js";
import { listTokensWithSessions } from "../operations/access/app-tokens.js";
import type { NewCredential } from "../operations/access/credentials.js";
import { type CommandDatabase, parseCommandLine } from "./command.js";

const USAGE =
  "Usage: npm run token -- <api|viewer|live|task> --app ID, or: editor <--app ID|--user ID>, or: admin --user ID; each also " +
  "[--name TEXT] [--expires 30m|12h|7d], viewer and live [--user ID], task [--run ID]; or: revoke <id>, or: list --app ID";

const OPTIONS = {
  app: { type: "string" },
  user: { type: "string" },
  run: { type: "string" },
  name: { type: "string" },
  expires: { type: "string" },
} as const;

type TokenOption = keyof typeof OPTIONS;
type OptionValues = Partial<Record<TokenOption, string>>;

/** Required (`required`) and allowed (`allowed`) options by kind of credential. All kinds also allow --name and --expires. */
const OPTIONS_BY_KIND: Record<CredentialKind, { required: readonly TokenOption[]; allowed: readonly TokenOption[] }> = {
  editor: { required: [], allowed: ["user", "app"] },
  admin: { required: ["user"], allowed: [] },
  api: { required: ["app"], allowed: [] },
  task: { required: ["app"], allowed: ["run"] },
  viewer: { required: ["app"], allowed: ["user"] },
  live: { required: ["app"], allowed: ["user"] },
};

const MS_BY_UNIT: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** Default lifetime of a task token (the token of one server run) that an operator creates. */
const TASK_TOKEN_DEFAULT_LIFETIME = "1h";

function readId(text: string | undefined, optionName: string): number | null {
  if (text === undefined) return null;
  const id = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(id) && id > 0) return id;
  throw new StartError(`${optionName} must be a positive whole number (got ${JSON.stringify(text)}). ${USAGE}`);
}

function readExpiry(text: string | undefined): Date | null {
  if (text === undefined) return null;
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (!count || !unit || Number(count) === 0) {
    throw new StartError(
      `--expires must be a number from 1 to 999999 and s, m, h or d, such as 12h (got ${JSON.stringify(text)}). ${USAGE}`,
    );
  }
  return new Date(Date.now() + Number(count) * MS_BY_UNIT[unit]!);
}

function readCredential(kind: CredentialKind, values: OptionValues): NewCredential {
  const { required, allowed } = OPTIONS_BY_KIND[kind];
  const missingOptions = required.filter((option) => values[option] === undefined);
  if (missingOptions.length > 0)
    throw new StartError(`A credential of the kind ${kind} needs --${missingOptions.join(" and --")}. ${USAGE}`);
  const unusedOptions = (["app", "user", "run"] as const).filter(
    (option) => values[option] !== undefined && !required.includes(option) && !allowed.includes(option),
  );
  if (unusedOptions.length > 0)
    throw new StartError(`A credential of the kind ${kind} cannot have --${unusedOptions.join(" or --")}. ${USAGE}`);
  return {
    kind,
    appId: readId(values.app, "--app"),
    personId: readId(values.user, "--user"),
    runId: readId(values.run, "--run"),
    name: values.name ?? null,
    expiresAt: readExpiry(values.expires ?? (kind === "task" ? TASK_TOKEN_DEFAULT_LIFETIME : undefined)),
  };
}

/** Checks that the app, the person and the run exist, because the database would report a wrong ID with an unclear error. */
async function checkReferencedIds(db: Db, { appId, personId, runId }: NewCredential): Promise<void> {
  const rowExists = async (sql: string, parameters: unknown[]) => (await rows(db, sql, parameters)).length > 0;
  if (appId && !(await rowExists("SELECT 1 FROM app WHERE id = $1", [appId]))) {
    throw new StartError(`there is no app with the ID ${appId}`);
  }
  if (personId && !(await rowExists("SELECT 1 FROM person WHERE id = $1", [personId]))) {
    throw new StartError(`there is no user with the ID ${personId}`);
  }
  if (runId && !(await rowExists("SELECT 1 FROM run WHERE id = $1 AND app_id = $2", [runId, appId]))) {
    throw new StartError(`the app ${appId} has no run with the ID ${runId}`);
  }
}

type TokenTask = (database: CommandDatabase) => Promise<object>;

function createTokenTask(kind: CredentialKind, values: OptionValues): TokenTask {
  const credential = readCredential(kind, values);
  if (kind === "editor" && (values.app === undefined) === (values.user === undefined)) {
    throw new StartError(`A credential of the kind editor needs exactly one of --app and --user. ${USAGE}`);
  }
  return async ({ db, credentials }) => {
    await checkReferencedIds(db, credential);
    if (kind !== "editor" || credential.personId) return credentials.issue(credential);
    return credentials.issue({ ...credential, appId: null, personId: await findFirstEditor(db, credential.appId!) });
  };
}

/**
 * Returns the ID of the app's editor with the lowest ID. An editor token that is created with `--app` belongs to this person.
 * @throws StartError if the app has no editor
 */
async function findFirstEditor(db: Db, appId: number): Promise<number> {
  const sql = `SELECT person_id AS "personId" FROM app_editor WHERE app_id = $1 ORDER BY person_id LIMIT 1`;
  const [editor] = await rows<{ personId: number }>(db, sql, [appId]);
  if (!editor)
    throw new StartError(
      `the app ${appId} has no editor, so the command cannot create a token of an editor; make a person an editor of this app, or pass --user`,
    );
  return editor.personId;
}

function createRevokeTask(text: string | undefined): TokenTask {
  const id = readId(text, "the ID of the token");
  if (id === null) throw new StartError(`The command revoke needs the ID of a token. ${USAGE}`);
  return async ({ credentials }) => {
    await credentials.revoke(id, null);
    return { id, revoked: true };
  };
}

function createListTask({ app }: OptionValues): TokenTask {
  const appId = readId(app, "--app");
  if (appId === null) throw new StartError(`The command list needs the option --app. ${USAGE}`);
  return async ({ db }) => ({ tokens: await listTokensWithSessions(db, appId) });
}

export function parseTokenTask(commandLineWords: string[]): TokenTask {
  const { positionals, values } = parseCommandLine(OPTIONS, USAGE, commandLineWords);
  const [word, id, ...more] = positionals;
  if (word === "revoke" && more.length === 0) return createRevokeTask(id);
  const unexpectedArgument = word === "revoke" ? more[0] : id;
  if (unexpectedArgument !== undefined)
    throw new StartError(`The command has an unexpected argument: ${unexpectedArgument}. ${USAGE}`);
  if (word === "list") return createListTask(values);
  const kind = CREDENTIAL_KINDS.find((kindName) => kindName === word);
  if (kind) return createTokenTask(kind, values);
  throw new StartError(
    `the first argument must be a kind of credential, or the command list or revoke (got ${word ?? "nothing"}). ${USAGE}`,
  );
}
