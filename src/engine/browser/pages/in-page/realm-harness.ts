/** Harness (script that executes a run) of a ShadowRealm. Removes all globals that the mode does not have, and calls `execute`. */

import type { HarnessCore } from "./core.js";
import type { UsePlatform } from "./host-platform.js";
import type { IsolateMessage } from "./messages.js";
import type { InstallRealmPlatform } from "./realm-platform.js";
import type { HostServiceCalls, OpenService } from "./service-calls.js";
import type { DefineStandIns } from "./stand-ins.js";

/** Runs in a new realm, which gets only the source text of this function. So it can use only globals and its own code. */
export function createRealmHarness(
  core: HarnessCore,
  defineStandIns: DefineStandIns,
  installPlatform: InstallRealmPlatform | null,
  openService: OpenService | null,
  globals: readonly string[],
): unknown {
  let send: (message: IsolateMessage) => void = () => {};
  const keptGlobals = new Set(globals);
  core.keepOnlyGlobals(keptGlobals);
  core.installConsole((line) => send(`console ${line}`));

  async function run(payload: string, settings: string, scripts: readonly string[]): Promise<void> {
    send(`answer ${await core.protectPromise(core.evaluateAndCall(payload, settings, scripts))}`);
  }

  /** Starts the run, which sends its messages to `receive`. Returns a function that removes the run's globals. */
  function start(
    receive: (message: unknown) => void,
    base: string,
    openCalls: HostServiceCalls["open"],
    payload: string,
    settings: string,
    standInsJson: string | null,
    navigatorJson: string,
    ...scripts: string[]
  ): () => void {
    send = receive;
    if (standInsJson !== null) defineStandIns(standInsJson, navigatorJson, () => send("answer needs-more"));
    if (base !== "") openService?.(base, settings, openCalls);
    void run(payload, settings, scripts);
    // Removes globals, because the global object may stay in memory after the run.
    return () => core.keepOnlyGlobals(keptGlobals);
  }

  return (usePlatform: UsePlatform | null, description: string) => {
    if (installPlatform !== null && usePlatform !== null) installPlatform(usePlatform, description);
    return start;
  };
}
