/** Props that all groups of an action's fields receive. */
import type { Api } from "../shared/api.js";
import type { Action } from "../shared/model.js";
import type { Draft } from "./draft.js";
import type { FieldError } from "./field-fault.js";

export interface FieldsProps {
  api: Api;
  appId: number;
  draft: Draft;
  /** Resolved dependencies of the saved action. */
  assets: Action["assets"];
  fault: FieldError | null;
  change: (change: Partial<Draft>) => void;
}
