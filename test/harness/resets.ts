import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { countLockWaits } from "./lock-waits.js";
import { createAccounts } from "./people.js";
import type { TestService } from "./service.js";
import { until } from "./until.js";

export const NEW_PASSPHRASE = "another harbour without lamps";

/** Creates a link that resets a person's passphrase. Returns a function that sets NEW_PASSPHRASE with this link. */
export async function prepareReset(service: TestService, personId: number): Promise<() => Promise<void>> {
  const { token } = await createAccounts(service).accounts.createResetLink(
    personId,
    { personId: null },
    async () => undefined,
  );
  return async () => {
    const body = { token, passphrase: NEW_PASSPHRASE };
    expect((await service.rest("POST", "/v1/auth/reset/confirm", { as: null, body })).http).to.equal(200);
  };
}

/**
 * Resets the passphrase of a person while `request` runs. Returns the result of `request`.
 * @param table table that only `request` uses, and only after its authorization. The function locks this table until the reset has ended.
 * Without `table`, the function locks the person's row. The reset waits for this row first, and then `request` does.
 */
export async function resetDuring<T>(
  service: TestService,
  personId: number,
  request: () => Promise<T>,
  table?: string,
): Promise<T> {
  const reset = await prepareReset(service, personId);
  const inProgress: Promise<unknown>[] = [];
  let requested: Promise<T> | undefined;
  await service.db.transaction(async (manager) => {
    const untilWaits = (count: number) => until(async () => (await countLockWaits(manager)) >= count);
    if (table) await manager.query(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
    else await rows(manager, "SELECT FROM person WHERE id = $1 FOR NO KEY UPDATE", [personId]);
    if (!table) {
      inProgress.push(reset());
      await untilWaits(1);
    }
    requested = request();
    await untilWaits(inProgress.length + 1);
    if (table) await reset();
  });
  await Promise.all(inProgress);
  return requested!;
}
