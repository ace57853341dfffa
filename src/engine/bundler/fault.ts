/** Errors for packages and project files that cannot be built, with messages for the author of an action. */

/** Error that a package or an action's source has caused, and not the service. */
export class PackageFault extends Error {
  override readonly name = "PackageFault";
}

/** Error that a file of a project folder has caused. The message contains the path of the file. */
export class ProjectFault extends PackageFault {}

/** Error if the machine was too busy to bundle a package. A retry may succeed. */
export class BundlerBusyError extends Error {
  override readonly name = "BundlerBusyError";
}

/** Error if the machine has no sandbox for opening packages from npm. */
export class UncontainedError extends Error {
  override readonly name = "UncontainedError";

  constructor() {
    super(
      "this machine does not allow user namespaces, so the service cannot bundle npm packages without access to the network; " +
        "the operator can allow user namespaces (docs/operate/containers.md) or set NPM_SANDBOX=off",
    );
  }
}
