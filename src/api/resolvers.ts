/** One instance of each resolver over the operations. */
import type { Operations } from "../operations/operations.js";
import { ActionResolver } from "./graphql/action-resolver.js";
import { AppResolver } from "./graphql/app-resolver.js";
import { LogResolver } from "./graphql/log-resolver.js";
import { RunResolver } from "./graphql/run-resolver.js";
import type { Resolvers } from "./graphql/schema.js";
import { SettingResolver } from "./graphql/setting-resolver.js";
import { TokenResolver } from "./graphql/token-resolver.js";

export function createResolvers(operations: Operations): Resolvers {
  const { gate, actions, apps, console, credentials, logs, people, runs, settings } = operations;
  return {
    actions: new ActionResolver(gate, actions),
    apps: new AppResolver(gate, apps, people, settings),
    logs: new LogResolver(gate, logs),
    runs: new RunResolver(gate, runs, console),
    settings: new SettingResolver(gate, settings),
    tokens: new TokenResolver(gate, credentials, people),
  };
}
