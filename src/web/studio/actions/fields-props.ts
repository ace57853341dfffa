/** What each group of an action's fields is given. */
import type { Api } from "../shared/api.js";
import type { Action } from "../shared/model.js";
import type { Draft } from "./draft.js";
import type { FieldFault } from "./field-fault.js";

export interface FieldsProps {
  api: Api;
  appId: number;
  draft: Draft;
  /** What the dependencies of the saved action became. */
  assets: Action["assets"];
  fault: FieldFault | null;
  change: (change: Partial<Draft>) => void;
}
