/**
 * Validates the data that an author sends for an action: the fields, the code, and the dependencies. If there are
 * several faults, the first one in the order of the validation table (rules/validation-table.ts) is reported.
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
import { inputOf, isNameTaken, nameTakenError } from "./action-rows.js";
import type { CodeReadings } from "./code-readings.js";
import type { BuiltSource, SourceBuilds } from "./source-builds.js";
import type { StoredSnapshot } from "./versions.js";

export interface ValidatedAction {
  input: ActionInput;
  /** Scripts that the action's dependencies load. */
  assets: StoredAsset[];
}

const isText = (code: unknown): code is string => typeof code === "string";

/** Returns a property of the data; undefined if it is missing. */
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

  /**
   * Checks the code and validates the fields.
   * @param parse validates the fields; it receives the function that returns the fault of the code
   * @param compiled code that was compiled before, so that compiler errors are ignored
   * @param buildFault error of building the code from its source files; null if the code was built
   */
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

  /** Resolves the dependencies of an action with source files, whose code is built afterwards. */
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

  /** Adds the resolved scripts to validated fields. @param knownAssets scripts that the action already has */
  const withAssets = (
    input: ActionInput,
    knownAssets: readonly StoredAsset[],
    resolved: ResolvedPackages,
  ): ValidatedAction => ({
    input,
    assets: packages.collectAssets(input.dependencies, knownAssets, resolved),
  });

  /**
   * Rejects unknown fields. This is the last check, so that other faults are reported first. @throws ActionError
   * REQUEST_INVALID
   */
  function withoutUnknown(data: unknown, validatedAction: ValidatedAction): ValidatedAction {
    refuseUnknownFields(data, ACTION_SHAPE);
    return validatedAction;
  }

  /**
   * Runs `judge`, and also checks that no other action has the same name or URL path. If there are several faults, it
   * throws the first one in the order of the validation table.
   */
  async function withFreeNameAndPaths(
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
      // An invalid name comes earlier in the table, so the name is valid here.
      if (isAfter("NAME_ALREADY_EXISTS") && isText(name) && (await isNameTaken(manager, appId, name, exceptId))) {
        throw nameTakenError(name);
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
     * Checks the code and resolves dependencies before a transaction, because both can take long. Faults are not
     * reported here: the validation in the transaction finds them again.
     * @param current the current draft; null for a new action
     * @param promisedAssets scripts that an imported document names
     */
    async prepare(
      author: ScriptAuthor,
      data: unknown,
      current: ActionRow | null,
      promisedAssets = NO_PROMISED_ASSETS,
    ): Promise<ResolvedPackages> {
      try {
        const hasSource = isObject(propertyOf(data, "source")) && propertyOf(data, "dependencies") !== undefined;
        const resolvedEarly = hasSource ? await resolvedOfSource(author, data, current, promisedAssets) : NO_PACKAGES;
        const builtSource = await sources.withBuiltCode(author.appId, data, current, resolvedEarly);
        if (hasSource) {
          const { data: wholeSnapshot } = builtSource;
          const code = propertyOf(wholeSnapshot, "code");
          if (isText(code)) await codeReadings.read(author.appId, code);
          return resolvedEarly;
        }
        const input = await (current ? updatedInput(current, builtSource) : createdInput(author.appId, builtSource));
        // Without `dependencies` in the data, the action keeps its scripts, also if an address now returns another
        // file. A dependency without a script gets one if possible.
        if (current && propertyOf(data, "dependencies") === undefined)
          return { ...(await packages.resolveMissing(author, input.dependencies, current.assets)), fault: null };
        return await packages.resolve(author, input.dependencies, current?.assets ?? [], promisedAssets);
      } catch (error) {
        if (error instanceof ActionError) return NO_PACKAGES;
        throw error;
      }
    },

    /**
     * Validates the data of a new action.
     * @param rewritten actions that the same transaction writes again, so that their URL paths are free
     * @throws the statuses for invalid fields (rules/validation-table.ts), DEPENDENCY_UNRESOLVED
     */
    async validateCreate(
      manager: EntityManager,
      appId: number,
      data: unknown,
      resolved: ResolvedPackages,
      rewritten: readonly number[] = [],
    ): Promise<ValidatedAction> {
      return withFreeNameAndPaths(manager, { appId, exceptId: null, rewritten }, data, async () =>
        withoutUnknown(
          data,
          withAssets(await createdInput(appId, await sources.withBuiltCode(appId, data, null, resolved)), [], resolved),
        ),
      );
    },

    /**
     * Validates an update, and returns the resulting action. Fields that are missing in `data` keep their values.
     * @throws as `created`
     */
    async validateUpdate(
      manager: EntityManager,
      current: ActionRow,
      data: unknown,
      resolved: ResolvedPackages,
      rewritten: readonly number[] = [],
    ): Promise<ValidatedAction> {
      const addressScope = { appId: current.appId, exceptId: current.id, rewritten };
      return withFreeNameAndPaths(manager, addressScope, data, async () =>
        withoutUnknown(
          data,
          withAssets(
            await updatedInput(current, await sources.withBuiltCode(current.appId, data, current, resolved)),
            current.assets,
            resolved,
          ),
        ),
      );
    },

    /**
     * Prepares `revived` before a transaction: checks the code of the snapshot, and resolves dependencies without a
     * script. @param current the current draft
     */
    async prepareRestore(
      author: ScriptAuthor,
      snapshot: StoredSnapshot,
      current: ActionRow,
    ): Promise<ResolvedPackages> {
      const { code, dependencies, assets } = snapshot;
      if (isText(code)) await codeReadings.read(author.appId, code);
      return { ...(await packages.resolveMissing(author, dependencies, [...assets, ...current.assets])), fault: null };
    },

    /**
     * Validates a stored snapshot with the current rules. The action gets exactly the scripts of the snapshot. A
     * missing script is replaced by the draft's script for the same dependency.
     * @throws as `created`, except for names
     */
    async validateRestore(
      manager: EntityManager,
      current: ActionRow,
      snapshot: StoredSnapshot,
      resolved: ResolvedPackages,
    ): Promise<ValidatedAction> {
      const { appId, id } = current;
      const knownAssets = [...snapshot.assets, ...current.assets];
      // A version from before the field `access` existed keeps the draft's `access`. Otherwise a restore could allow
      // callers that the author has excluded since.
      const wholeSnapshot = { ...snapshot, access: snapshot.access ?? inputOf(current).access };
      const input = await createdInput(appId, { data: wholeSnapshot, fault: null });
      const addressFault = await addressTakenFault(manager, { appId, isDraft: true, except: [id] }, input.triggers);
      if (addressFault) throw addressFault;
      return withAssets(input, knownAssets, resolved);
    },

    /** Resolves the dependencies without a script of an action that will be published. */
    preparePublish: (author: ScriptAuthor, { dependencies, assets }: ActionRow): Promise<ResolvedPackages> =>
      packages.resolveMissing(author, dependencies, assets),

    /**
     * Returns the fields and scripts of an action that will be published. @throws DEPENDENCY_UNRESOLVED if a script is
     * not available
     */
    validatePublish: (master: ActionRow, resolved: ResolvedPackages): ValidatedAction =>
      withAssets(inputOf(master), master.assets, resolved),
  };
}
