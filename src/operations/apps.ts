/** Apps: made, listed, renamed, published. Their settings are another room's. */
import type { DataSource } from "typeorm";
import { AppRow } from "../data/app.js";
import { type Executor, rows } from "../data/database.js";
import { ActionError } from "../errors.js";
import type { Caller } from "../rules/access.js";
import { audit } from "./audit.js";
import { optionalId, type People, requiredText } from "./people.js";

/** An app without its settings. Times are ISO 8601. */
export interface App {
  id: number;
  organizationId: number;
  name: string;
  isPublished: boolean;
  startingPageId: number | null;
  hooks: unknown;
  isTemplate: boolean;
  dependencies: unknown;
  icon: string | null;
  isSystemTemplate: boolean;
  isHidden: boolean;
  createdAt: string;
  updatedAt: string;
}

export function toApp(row: AppRow): App {
  const { publishedAt, createdAt, updatedAt, dataKey: _, ...fields } = row;
  return {
    ...fields,
    isPublished: publishedAt !== null,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}

type Field = (value: unknown, name: string) => unknown;

function flag(value: unknown, name: string): boolean {
  if (typeof value === "boolean") return value;
  throw new ActionError("REQUEST_INVALID", `${name} must be true or false`);
}

/** Anything that JSON can say; an object or an array where it is something at all. */
function structure(value: unknown, name: string): unknown {
  if (value === null || typeof value === "object") return value;
  throw new ActionError("REQUEST_INVALID", `${name} must be an object, an array or null`);
}

const optionalText: Field = (value, name) => (value === null ? null : requiredText(value, name));

/** What PUT takes (specification, Settings endpoints); everything else in a body is ignored. */
const FIELDS: Record<string, Field> = {
  name: requiredText,
  startingPageId: optionalId,
  hooks: structure,
  isTemplate: flag,
  dependencies: structure,
  icon: optionalText,
};
const ADMIN_FIELDS: Record<string, Field> = { ...FIELDS, isSystemTemplate: flag, isHidden: flag };

/** The changes that a body asks for, of the fields that the caller may change. @throws REQUEST_INVALID */
function changesIn(body: unknown, fields: Record<string, Field>): Partial<AppRow> {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new ActionError("REQUEST_INVALID", "the body must be an object");
  }
  const given = Object.entries(fields).filter(([name]) => Object.hasOwn(body, name));
  return Object.fromEntries(given.map(([name, check]) => [name, check((body as Record<string, unknown>)[name], name)]));
}

export type Apps = ReturnType<typeof createApps>;

export function createApps({ db, people }: { db: DataSource; people: People }) {
  async function find(appId: number): Promise<AppRow> {
    const row = appId > 0 ? await db.getRepository(AppRow).findOneBy({ id: appId }) : null;
    if (!row) throw new ActionError("APP_NOT_FOUND");
    return row;
  }

  async function setPublished(caller: Caller, appId: number, published: boolean): Promise<App> {
    await db.transaction(async (manager) => {
      await rows(
        manager,
        `UPDATE app SET published_at = CASE WHEN $2 THEN coalesce(published_at, now()) END, updated_at = now() WHERE id = $1`,
        [appId, published],
      );
      await audit(manager, caller, { appId, type: published ? "app.publish" : "app.unpublish", data: {} });
    });
    return toApp(await find(appId));
  }

  return {
    /** @throws REQUEST_INVALID */
    async create(data: Record<string, unknown>, executor: Executor = db): Promise<App> {
      const name = requiredText(data["name"], "name");
      const organizationId = await people.organizationOf(optionalId(data["organizationId"], "organizationId"));
      const [made] = await rows<{ id: number }>(
        executor,
        "INSERT INTO app (organization_id, name) VALUES ($1, $2) RETURNING id",
        [organizationId, name],
      );
      return toApp(await find(made!.id));
    },

    /** The apps that the caller's credential reaches. */
    async list(caller: Caller): Promise<App[]> {
      const ids = caller.kind === "editor" ? [...caller.editorOf] : [caller.appId];
      const found = await db
        .getRepository(AppRow)
        .createQueryBuilder("app")
        .where("(:all OR app.id = ANY (:ids))", { all: caller.kind === "admin", ids })
        .orderBy("app.id")
        .getMany();
      return found.map(toApp);
    },

    /** Changes the app's own fields; `settings` in the body is ignored. @throws REQUEST_INVALID */
    async update(caller: Caller, appId: number, body: unknown): Promise<App> {
      const changes = changesIn(body, caller.kind === "admin" ? ADMIN_FIELDS : FIELDS);
      const row = Object.assign(await find(appId), changes, { updatedAt: new Date() });
      await db.transaction(async (manager) => {
        await manager.save(row);
        await audit(manager, caller, { appId, type: "app.update", data: { fields: Object.keys(changes) } });
      });
      return toApp(row);
    },

    publish: (caller: Caller, appId: number) => setPublished(caller, appId, true),
    unpublish: (caller: Caller, appId: number) => setPublished(caller, appId, false),
  };
}
