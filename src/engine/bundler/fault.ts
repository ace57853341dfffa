/** Reasons why a package cannot be made into a script, as messages for the author of an action. */

/** The package is at fault, not the service. */
export class PackageFault extends Error {
  override readonly name = "PackageFault";
}

/** A file of a project folder is at fault. The message names the file. */
export class ProjectFault extends PackageFault {}

/** The machine was too busy to bundle a package. A retry may help. */
export class BundlerBusyError extends Error {
  override readonly name = "BundlerBusyError";
}

/** The machine has no sandbox in which packages from npm can be opened. */
export class UncontainedError extends Error {
  override readonly name = "UncontainedError";

  constructor() {
    super(
      "this machine gives its bundler no user namespaces, without which it would have a network; the operator may allow them " +
        "(docs/operate/containers.md), or set NPM_SANDBOX=off",
    );
  }
}
