/** Whether what an author gives makes an action: the rules, the compile check and the catalogue, in the order of the validation table. Writes nothing. */
import type { EntityManager } from "typeorm";
import type { ActionRow } from "../../data/action.js";
import type { StoredAsset } from "../../data/action-types.js";
import { ActionError } from "../../errors.js";
import type { CodeJudge } from "../../rules/action-fields.js";
import { type ActionInput, parseCreate, parseUpdate } from "../../rules/action-input.js";
import { faultOfReading } from "../../rules/code.js";
import { isObject } from "../../rules/described.js";
import { validationRow } from "../../rules/validation-table.js";
import { inputOf, isNameTaken, nameTaken } from "./action-rows.js";
import type { CodeReadings } from "./code-readings.js";

export interface Judged {
  input: ActionInput;
  /** What the dependencies load. */
  assets: StoredAsset[];
}

const isText = (code: unknown): code is string => typeof code === "string";

/** As the rules see it: undefined stands for a property that was not given. */
function propertyOf(data: unknown, key: string): unknown {
  return isObject(data) && Object.hasOwn(data, key) ? data[key] : undefined;
}

export type Judgement = ReturnType<typeof createJudgement>;

export function createJudgement(options: {
  codeReadings: CodeReadings;
  /** What the dependencies load; throws DEPENDENCIES_INVALID, DEPENDENCY_UNRESOLVED. */
  resolveAssets: (dependencies: readonly string[]) => StoredAsset[];
}) {
  const { codeReadings, resolveAssets } = options;

  /** @param parse applies the rules, given what is wrong with the code @param compiled code that needs no compile check */
  async function whole(
    appId: number,
    code: unknown,
    parse: (judge: CodeJudge) => ActionInput,
    compiled: string | null,
  ): Promise<Judged> {
    const verdict = isText(code) ? await codeReadings.read(appId, code) : null;
    const input = parse((_code, dependencies) => faultOfReading(verdict!.reading, dependencies));
    if (verdict?.compileFault && input.code !== compiled) throw verdict.compileFault;
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
      const later = error instanceof ActionError && validationRow(error.status) > validationRow("NAME_ALREADY_EXISTS");
      // A name that the rules had refused would have been told first.
      if (later && typeof name === "string" && (await isNameTaken(manager, appId, name, exceptId))) {
        throw nameTaken(name);
      }
      throw error;
    }
  }

  return {
    /**
     * Has code read that is to be judged within a transaction, which then waits for nobody.
     * @throws CODE_VALIDATION_FAILED when reading passes a limit
     */
    async readAhead(appId: number, code: unknown): Promise<void> {
      if (isText(code)) await codeReadings.read(appId, code);
    },

    /** @throws a status of the validation table */
    async created(manager: EntityManager, appId: number, data: unknown): Promise<Judged> {
      const where = { appId, name: propertyOf(data, "name"), exceptId: null };
      const code = propertyOf(data, "code");
      return namesFirst(manager, where, () => whole(appId, code, (judge) => parseCreate(data, judge), null));
    },

    /** The action as it is after an update (specification, `update`). @throws a status of the validation table */
    async updated(manager: EntityManager, current: ActionRow, data: unknown): Promise<Judged> {
      const { appId } = current;
      const where = { appId, name: propertyOf(data, "name"), exceptId: current.id };
      const code = propertyOf(data, "code") ?? current.code;
      const parse = (judge: CodeJudge) => parseUpdate(data, inputOf(current), judge);
      return namesFirst(manager, where, () => whole(appId, code, parse, current.code));
    },

    /** A stored snapshot by the rules of today. @throws a status of the validation table but for names */
    async revived(appId: number, snapshot: unknown): Promise<Judged> {
      return whole(appId, propertyOf(snapshot, "code"), (judge) => parseCreate(snapshot, judge), null);
    },
  };
}
