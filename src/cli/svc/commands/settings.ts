/**
 * svc settings: lists the keys of settings, sets a value from standard input, removes a setting. Prints the values of public settings only.
 */
import type { Command } from "commander";
import { wrongUse } from "../failure.js";
import type { Run } from "../session.js";

const SETTINGS = "/v1/apps/:app/settings";

const tierOf = (key: string) => (key.startsWith("__") ? "protected" : key.startsWith("_") ? "private" : "public");

/** Parses the value of a setting as JSON. Text that is not JSON is used as it is, without its last line break. */
function readValue(text: string): unknown {
  const trimmed = text.replace(/\r?\n$/, "");
  try {
    return JSON.parse(trimmed);
  } catch {
    return trimmed;
  }
}

export function addSettings(program: Command, run: Run): void {
  const settings = program.command("settings").description("settings of the app");

  settings
    .command("list", { isDefault: true })
    .description("list the keys of the settings with their tiers, and the values of public settings")
    .action(() =>
      run(async ({ client, output }) => {
        const [{ body: values }, { body: status }] = await Promise.all([
          client.request("GET", SETTINGS),
          client.request("GET", `${SETTINGS}/status`),
        ]);
        const hiddenKeys = Object.keys(status.configured).filter((key) => status.configured[key] === true);
        const keys = [...new Set([...Object.keys(values), ...hiddenKeys])].sort();
        const listedKeys = keys.map((key) => {
          const tier = tierOf(key);
          return { key, tier, ...(tier === "public" && { value: values[key] }) };
        });
        output.table(
          listedKeys.map(({ key, tier, value }) => [key, tier, tier === "public" ? JSON.stringify(value) : ""]),
        );
        output.json({ settings: listedKeys });
      }),
    );

  settings
    .command("set")
    .argument("<key>", "key of the setting; _ makes it private, __ protected")
    .description("set a value, which is read from standard input")
    .action((key: string) =>
      run(async (session) => {
        if (session.surroundings.stdin.isTTY === true) session.output.note("Type the value, then Ctrl D");
        const text = await session.readStdin();
        if (text === "") throw wrongUse("standard input is empty");
        await session.client.request("POST", SETTINGS, { body: { [key]: readValue(text) } });
        session.output.line(`set ${key}`, "green");
        session.output.json({ key });
      }),
    );

  settings
    .command("unset")
    .argument("<keys...>", "keys of the settings")
    .description("remove settings")
    .action((keys: string[]) =>
      run(async (session) => {
        await session.confirm(`Remove ${keys.join(", ")}?`);
        await session.client.request("DELETE", SETTINGS, { body: { keys } });
        session.output.line(`removed ${keys.join(", ")}`, "green");
        session.output.json({ keys });
      }),
    );
}
