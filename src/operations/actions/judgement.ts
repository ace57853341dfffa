/** Whether what an author gives makes an action: the rules, the compile check and the catalogue, in the order of the validation table. Writes nothing. */
import type { EntityManager } from "typeorm";
import type { ActionRow } from "../../data/action.js";
import type { Asset } from "../../data/action-types.js";
import { ActionError, STATUS } from "../../errors.js";
import { type ActionInput, parseCreate, parseUpdate } from "../../rules/action-input.js";
import { isObject } from "../../rules/described.js";
import { inputOf, isNameTaken, nameTaken } from "./action-rows.js";

export interface Judged {
  input: ActionInput;
  /** What the dependencies load. */
  assets: Asset[];
}

const ORDER = Object.keys(STATUS);
const AFTER_NAMES = ORDER.slice(ORDER.indexOf("NAME_ALREADY_EXISTS") + 1);

export type Judgement = ReturnType<typeof createJudgement>;

export function createJudgement(options: {
  /** Compiles the code without running it; throws CODE_VALIDATION_FAILED. */
  checkCode: (code: string) => Promise<void>;
  /** What the dependencies load; throws DEPENDENCIES_INVALID, DEPENDENCY_UNRESOLVED. */
  resolveAssets: (dependencies: readonly string[]) => Asset[];
}) {
  const { checkCode, resolveAssets } = options;

  async function whole(input: ActionInput, compiled: string | null): Promise<Judged> {
    if (input.code !== compiled) await checkCode(input.code);
    return { input, assets: resolveAssets(input.dependencies) };
  }

  /** Of several faults the first of the table is told, and a name that is taken stands early in it. */
  async function namesFirst(
    manager: EntityManager,
    where: { appId: number; name: unknown; exceptId: number | null },
    judge: () => Promise<Judged>,
  ): Promise<Judged> {
    try {
      return await judge();
    } catch (error) {
      const { appId, name, exceptId } = where;
      const later = error instanceof ActionError && AFTER_NAMES.includes(error.status);
      // A name that the rules had refused would have been told first.
      if (later && typeof name === "string" && (await isNameTaken(manager, appId, name, exceptId))) {
        throw nameTaken(name);
      }
      throw error;
    }
  }

  const nameIn = (data: unknown) => (isObject(data) ? data["name"] : undefined);

  return {
    /** @throws a status of the validation table */
    async created(manager: EntityManager, appId: number, data: unknown): Promise<Judged> {
      const where = { appId, name: nameIn(data), exceptId: null };
      return namesFirst(manager, where, async () => whole(parseCreate(data), null));
    },

    /** The action as it is after an update (specification, `update`). @throws a status of the validation table */
    async updated(manager: EntityManager, current: ActionRow, data: unknown): Promise<Judged> {
      const where = { appId: current.appId, name: nameIn(data), exceptId: current.id };
      return namesFirst(manager, where, async () => whole(parseUpdate(data, inputOf(current)), current.code));
    },

    /** A stored snapshot by the rules of today. @throws a status of the validation table but for names */
    async revived(snapshot: unknown): Promise<Judged> {
      return whole(parseCreate(snapshot), null);
    },
  };
}
