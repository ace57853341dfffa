/**
 * Finds settings of a saved action that have no effect (contract, section 3). Imports nothing, because the browser executes this file too.
 */

export interface ActionWarning {
  /** Path of the field, such as `triggers[0]`. */
  path: string;
  message: string;
}

interface ScheduledAction {
  triggers: readonly { trigger: string }[];
  frequency: string | null;
}

/** Returns a warning for each schedule trigger of an action that has no `frequency` (cron expression). */
export function listActionWarnings({ triggers, frequency }: ScheduledAction): ActionWarning[] {
  if (frequency) return [];
  return triggers.flatMap(({ trigger }, index) => {
    if (trigger !== "schedule") return [];
    return [
      { path: `triggers[${index}]`, message: 'a schedule trigger without "frequency" never runs; set "frequency"' },
    ];
  });
}
