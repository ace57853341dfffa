/** Errors for packages and project files that cannot be built, with messages for the author of an action. */

/** Error that a package or the source of an action has caused. */
export class PackageError extends Error {
  override readonly name = "PackageError";
}

/** Error in a file of a project folder. The message contains the path of the file. */
export class ProjectError extends PackageError {}

/** Error if a build could not start or finish: the machine is too busy, or the service is stopping. A retry may succeed. */
export class BundlerBusyError extends Error {
  override readonly name = "BundlerBusyError";
}

/** Error if this machine has no working sandbox in which npm packages can be opened safely. */
export class SandboxUnavailableError extends Error {
  override readonly name = "SandboxUnavailableError";

  /** @param allowsNetwork true if the operator has set NPM_SANDBOX=off, which also allows sandboxes with network access */
  constructor(allowsNetwork = false) {
    super(
      allowsNetwork
        ? "this machine cannot start the process that bundles npm packages, even without user namespaces (NPM_SANDBOX=off); " +
            "the operator finds the cause with npm run doctor"
        : "this machine does not allow user namespaces, so the service cannot bundle npm packages without access to the network; " +
            "the operator can allow user namespaces (docs/operate/containers.md) or set NPM_SANDBOX=off",
    );
  }
}
