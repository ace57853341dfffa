/** Creates all modules with operations on actions, except runs. */
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import type { AddressAssets } from "../../rules/packages.js";
import type { Endpoints } from "../http/endpoints.js";
import type { Packages } from "../packages/packages.js";
import type { TriggerIndex } from "../triggers/trigger-index.js";
import { createLockMaster, createShowAction } from "./action-rows.js";
import { createActions } from "./actions.js";
import { createCodeReadings } from "./code-readings.js";
import { createComparison } from "./comparison.js";
import { createImportSteps } from "./import-steps.js";
import { createActionValidation } from "./judgement.js";
import { createMasters } from "./masters.js";
import { createPayloadPresets } from "./presets.js";
import { createCodeProblems } from "./problems.js";
import { createPublishing } from "./publishing.js";
import { createRestoring } from "./restoring.js";
import { createSecretRotation } from "./secret-rotation.js";
import { createSourceBuilds } from "./source-builds.js";
import { createTransfer } from "./transfer.js";
import { createVersions } from "./versions.js";

export interface Authoring {
  db: DataSource;
  /** Compiles the code without running it. @throws ActionError CODE_VALIDATION_FAILED */
  checkCode: (code: string) => Promise<void>;
  packages: Packages;
  addressed: AddressAssets;
  triggerIndex: TriggerIndex;
  /** Time limit of a run in milliseconds, set by the operator. */
  serverTimeoutMs: number;
  /** True if `integrationOrigins` of actions may contain http and loopback origins. */
  allowPrivateNetwork: boolean;
  endpoints: Endpoints;
  log: Logger;
}

export function createAuthoring(options: Authoring) {
  const { db, checkCode, packages, addressed, triggerIndex, serverTimeoutMs, allowPrivateNetwork, endpoints, log } =
    options;
  const showAction = createShowAction(addressed);
  const lockMaster = createLockMaster(showAction);
  const codeReadings = createCodeReadings(checkCode);
  const sources = createSourceBuilds({ packages });
  const actionValidation = createActionValidation({
    codeReadings,
    sources,
    packages,
    serverTimeoutMs,
    allowPrivateNetwork,
  });
  const masters = createMasters({ log, endpoints });
  const importSteps = createImportSteps({ db, judgement: actionValidation, masters, packages });
  return {
    actions: createActions({ db, judgement: actionValidation, masters, show: showAction, lockMaster }),
    publishing: createPublishing({
      db,
      judgement: actionValidation,
      masters,
      log,
      show: showAction,
      lockMaster,
      triggerIndex,
    }),
    versions: createVersions({ db, addressed }),
    rotateSecret: createSecretRotation({ db, endpoints, lockMaster }),
    restoring: createRestoring({ db, judgement: actionValidation, masters, log, show: showAction, lockMaster }),
    comparison: createComparison({ db }),
    importSteps,
    transfer: createTransfer({ db, steps: importSteps }),
    presets: createPayloadPresets({ db }),
    problems: createCodeProblems({ codeReadings }),
  };
}
