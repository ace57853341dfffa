/**
 * Validates an author's data for an action by the rules, the compile check and the catalogue. Faults have the order of
 * the specification's validation table.
 */
import type { EntityManager } from "typeorm";
import type { ActionRow } from "../../data/action.js";
import type { StoredAsset } from "../../data/action-types.js";
import { ActionError, type Status } from "../../errors.js";
import { type CodeCheck, dependenciesFault } from "../../rules/action-fields.js";
import { ACTION_SHAPE, type ActionInput, parseCreate, parseUpdate } from "../../rules/action-input.js";
import { faultOfReading } from "../../rules/code.js";
import { isObject } from "../../rules/described.js";
import { storedTriggers, triggersFault } from "../../rules/trigger-input.js";
import { refuseUnknownFields } from "../../rules/unknown-fields.js";
import { validationRow } from "../../rules/validation-table.js";
import { addressTakenFault } from "../http/routes.js";
import {
  NO_PACKAGES,
  NO_PROMISED_ASSETS,
  type Packages,
  type PromisedAssets,
  type ResolvedPackages,
} from "../packages/packages.js";
import type { ScriptAuthor } from "../packages/script-quota.js";
import { inputOf, isNameTaken, nameTaken } from "./action-rows.js";
import type { CodeReadings } from "./code-readings.js";
import type { BuiltSource, SourceBuilds } from "./source-builds.js";
import type { StoredSnapshot } from "./versions.js";

export interface ValidatedAction {
  input: ActionInput;
  /** Scripts that the dependencies load. */
  assets: StoredAsset[];
}

const isText = (code: unknown): code is string => typeof code === "string";

/** Returns the property as the rules expect it; undefined if it is absent. */
function propertyOf(data: unknown, key: string): unknown {
  return isObject(data) && Object.hasOwn(data, key) ? data[key] : undefined;
}

export type ActionValidation = ReturnType<typeof createActionValidation>;

export function createActionValidation(options: {
  codeReadings: CodeReadings;
  sources: SourceBuilds;
  packages: Packages;
  serverTimeoutMs: number;
  allowPrivateNetwork: boolean;
}) {
  const { codeReadings, sources, packages, serverTimeoutMs, allowPrivateNetwork } = options;
  const checkOptions = { serverTimeoutMs, allowPrivateNetwork };

  /** @param parse applies the rules; gets the fault of the code @param compiled code that needs no compile check */
  async function inputBy(
    appId: number,
    code: unknown,
    parse: (checkCode: CodeCheck) => ActionInput,
    compiled: string | null,
    buildFault: string | null = null,
  ): Promise<ActionInput> {
    const codeVerdict = isText(code) ? await codeReadings.read(appId, code) : null;
    const input = parse((_code, dependencies) =>
      buildFault === null ? faultOfReading(codeVerdict!.reading, dependencies) : `source: ${buildFault}`,
    );
    if (codeVerdict?.compileFault && input.code !== compiled) throw codeVerdict.compileFault;
    return input;
  }

  const createdInput = (appId: number, { data, fault }: BuiltSource) =>
    inputBy(appId, propertyOf(data, "code"), (judge) => parseCreate(data, { judge, ...checkOptions }), null, fault);

  function updatedInput(current: ActionRow, { data, fault }: BuiltSource): Promise<ActionInput> {
    const code = propertyOf(data, "code") ?? current.code;
    const parse = (checkCode: CodeCheck) => parseUpdate(data, inputOf(current), { judge: checkCode, ...checkOptions });
    return inputBy(current.appId, code, parse, current.code, fault);
  }

  /** Resolves the dependencies of data whose code is not built yet. */
  async function resolvedOfSource(
    author: ScriptAuthor,
    data: unknown,
    current: ActionRow | null,
    promisedAssets: PromisedAssets,
  ) {
    const input = propertyOf(data, "dependencies");
    const list = dependenciesFault(input) === null ? (input as string[]) : [];
    return packages.resolve(author, list, current?.assets ?? [], promisedAssets);
  }

  /** Adds the resolved scripts to the input. `known` are those that the action already has. */
  const withAssets = (
    input: ActionInput,
    knownAssets: readonly StoredAsset[],
    resolved: ResolvedPackages,
  ): ValidatedAction => ({
    input,
    assets: packages.settle(input.dependencies, knownAssets, resolved),
  });

  /** @throws ActionError REQUEST_INVALID for unknown fields, after all other faults */
  function withoutUnknown(data: unknown, validatedAction: ValidatedAction): ValidatedAction {
    refuseUnknownFields(data, ACTION_SHAPE);
    return validatedAction;
  }

  /**
   * Reports the first of several faults in the order of the validation table, in which a name or path that another
   * action uses comes early.
   */
  async function withTaken(
    manager: EntityManager,
    addressScope: { appId: number; exceptId: number | null; rewritten: readonly number[] },
    data: unknown,
    judge: () => Promise<ValidatedAction>,
  ): Promise<ValidatedAction> {
    const { appId, exceptId, rewritten } = addressScope;
    const draftFilter = { appId, isDraft: true, except: [...rewritten, ...(exceptId === null ? [] : [exceptId])] };
    const validatedAction = await judge().catch(async (error: unknown) => {
      if (!(error instanceof ActionError)) throw error;
      const isAfter = (status: Status) => validationRow(error.status) > validationRow(status);
      const [name, triggers] = [propertyOf(data, "name"), propertyOf(data, "triggers")];
      // If the name was faulty, this would have been reported first.
      if (isAfter("NAME_ALREADY_EXISTS") && isText(name) && (await isNameTaken(manager, appId, name, exceptId))) {
        throw nameTaken(name);
      }
      if (isAfter("TRIGGERS_INVALID") && triggersFault(triggers) === null) {
        throw (await addressTakenFault(manager, draftFilter, storedTriggers(triggers))) ?? error;
      }
      throw error;
    });
    const addressFault = await addressTakenFault(manager, draftFilter, validatedAction.input.triggers);
    if (addressFault) throw addressFault;
    return validatedAction;
  }

  return {
    /**
     * Checks code and resolves dependencies before a transaction, so that it need not wait for them. Faults are
     * reported in the transaction.
     * @param current the current action; null for a new one
     * @param promisedAssets resolved dependencies of an imported document
     */
    async ahead(
      author: ScriptAuthor,
      data: unknown,
      current: ActionRow | null,
      promisedAssets = NO_PROMISED_ASSETS,
    ): Promise<ResolvedPackages> {
      try {
        const hasSource = isObject(propertyOf(data, "source")) && propertyOf(data, "dependencies") !== undefined;
        const resolvedEarly = hasSource ? await resolvedOfSource(author, data, current, promisedAssets) : NO_PACKAGES;
        const builtSource = await sources.codeOf(author.appId, data, current, resolvedEarly);
        if (hasSource) {
          const { data: wholeSnapshot } = builtSource;
          const code = propertyOf(wholeSnapshot, "code");
          if (isText(code)) await codeReadings.read(author.appId, code);
          return resolvedEarly;
        }
        const input = await (current ? updatedInput(current, builtSource) : createdInput(author.appId, builtSource));
        // Absent fields keep their values, including addresses that have changed meanwhile. A dependency without a
        // script gets one if possible.
        if (current && propertyOf(data, "dependencies") === undefined)
          return { ...(await packages.caughtUp(author, input.dependencies, current.assets)), fault: null };
        return await packages.resolve(author, input.dependencies, current?.assets ?? [], promisedAssets);
      } catch (error) {
        if (error instanceof ActionError) return NO_PACKAGES;
        throw error;
      }
    },

    /**
     * @param rewritten actions whose addresses are free, because the same transaction writes them again
     * @throws a status of the validation table, DEPENDENCY_UNRESOLVED
     */
    async created(
      manager: EntityManager,
      appId: number,
      data: unknown,
      resolved: ResolvedPackages,
      rewritten: readonly number[] = [],
    ): Promise<ValidatedAction> {
      return withTaken(manager, { appId, exceptId: null, rewritten }, data, async () =>
        withoutUnknown(
          data,
          withAssets(await createdInput(appId, await sources.codeOf(appId, data, null, resolved)), [], resolved),
        ),
      );
    },

    /** Returns the action after an update (specification, `update`). @throws as `created` */
    async updated(
      manager: EntityManager,
      current: ActionRow,
      data: unknown,
      resolved: ResolvedPackages,
      rewritten: readonly number[] = [],
    ): Promise<ValidatedAction> {
      const addressScope = { appId: current.appId, exceptId: current.id, rewritten };
      return withTaken(manager, addressScope, data, async () =>
        withoutUnknown(
          data,
          withAssets(
            await updatedInput(current, await sources.codeOf(current.appId, data, current, resolved)),
            current.assets,
            resolved,
          ),
        ),
      );
    },

    /** Prepares the validation of a stored snapshot: checks its code, and looks for missing scripts. @param current the current action */
    async revivedAhead(author: ScriptAuthor, snapshot: StoredSnapshot, current: ActionRow): Promise<ResolvedPackages> {
      const { code, dependencies, assets } = snapshot;
      if (isText(code)) await codeReadings.read(author.appId, code);
      return { ...(await packages.caughtUp(author, dependencies, [...assets, ...current.assets])), fault: null };
    },

    /**
     * Validates a stored snapshot by the current rules, with exactly its scripts. A missing script is replaced by that of the action.
     * @throws as `created`, except for names
     */
    async revived(
      manager: EntityManager,
      current: ActionRow,
      snapshot: StoredSnapshot,
      resolved: ResolvedPackages,
    ): Promise<ValidatedAction> {
      const { appId, id } = current;
      const knownAssets = [...snapshot.assets, ...current.assets];
      // A version from before the field `access` existed has no value for it. Restoring such a version must not open an action that was
      // closed since.
      const wholeSnapshot = { ...snapshot, access: snapshot.access ?? inputOf(current).access };
      const input = await createdInput(appId, { data: wholeSnapshot, fault: null });
      const addressFault = await addressTakenFault(manager, { appId, isDraft: true, except: [id] }, input.triggers);
      if (addressFault) throw addressFault;
      return withAssets(input, knownAssets, resolved);
    },

    /** Looks for missing scripts of an action before its publication. */
    publishedAhead: (author: ScriptAuthor, { dependencies, assets }: ActionRow): Promise<ResolvedPackages> =>
      packages.caughtUp(author, dependencies, assets),

    /** Returns the scripts of an action to publish. @throws DEPENDENCY_UNRESOLVED if one is not available */
    published: (master: ActionRow, resolved: ResolvedPackages): ValidatedAction =>
      withAssets(inputOf(master), master.assets, resolved),
  };
}
