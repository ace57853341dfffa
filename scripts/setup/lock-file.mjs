/** Reads npm's lock file: its packages, and those that npm installs on this machine. */
import { readFileSync } from "node:fs";

export function readPackages(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8")).packages;
  } catch {
    return null;
  }
}

function allowsValue(list, value) {
  if (!list) return true;
  const names = [list].flat();
  return names.includes(value) || (names.every((name) => name.startsWith("!")) && !names.includes(`!${value}`));
}

export const fitsPlatform = (entry, machine) =>
  allowsValue(entry.os, machine.platform) && allowsValue(entry.cpu, machine.arch);

export function describeCurrentMachine() {
  process.report.excludeNetwork = true;
  const isGlibc = Boolean(process.report.getReport().header.glibcVersionRuntime);
  return { platform: process.platform, arch: process.arch, libc: isGlibc ? "glibc" : "musl" };
}

/** Returns the path of the package that Node loads if the package at `path` imports `name`; null if there is none. */
function resolveDependency(packages, path, name) {
  for (let folder = path; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("/node_modules/")))) {
    const found = `${folder}${folder ? "/" : ""}node_modules/${name}`;
    if (found in packages) return found;
    if (folder === "") return null;
  }
}

function listDependencies(entry, isServiceOnly) {
  const { dependencies, optionalDependencies, peerDependencies, devDependencies } = entry;
  return Object.keys({
    ...dependencies,
    ...optionalDependencies,
    ...peerDependencies,
    ...(isServiceOnly ? {} : devDependencies),
  });
}

/** Returns the paths of the packages that the project needs on this machine, directly or through other packages. */
export function selectPackages(packages, machine, isServiceOnly) {
  const selected = new Set();
  const pending = [""];
  for (const path of pending) {
    for (const name of listDependencies(packages[path], isServiceOnly)) {
      const found = resolveDependency(packages, path, name);
      if (found === null || selected.has(found)) continue;
      const entry = packages[found];
      const fits =
        fitsPlatform(entry, machine) && (machine.platform !== "linux" || allowsValue(entry.libc, machine.libc));
      if (entry.optional && !fits) continue;
      selected.add(found);
      pending.push(found);
    }
  }
  return [...selected].sort();
}
