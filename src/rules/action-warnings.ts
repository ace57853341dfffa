/** What a saved action does not do, though it seems to (contract, section 3). Both sides run this: it imports nothing. */

export interface Warning {
  /** The field, by its path. */
  path: string;
  message: string;
}

interface Scheduled {
  triggers: readonly { trigger: string }[];
  frequency: string | null;
}

/** Empty if the action does what it says. */
export function actionWarnings({ triggers, frequency }: Scheduled): Warning[] {
  if (frequency) return [];
  return triggers.flatMap(({ trigger }, at) => {
    if (trigger !== "schedule") return [];
    return [{ path: `triggers[${at}]`, message: 'a schedule trigger without "frequency" never runs; set "frequency"' }];
  });
}
