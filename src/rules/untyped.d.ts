// Type declarations for packages without types of their own. They contain only what this project uses.
declare module "npm-pick-manifest" {
  function pickManifest(packument: object, wanted: string, options: object): pickManifest.Manifest | null;
  namespace pickManifest {
    interface Manifest {
      version: string;
      dist?: { tarball?: unknown; integrity?: unknown; shasum?: unknown };
      dependencies?: unknown;
      optionalDependencies?: unknown;
      peerDependencies?: unknown;
      peerDependenciesMeta?: unknown;
    }
  }
  export = pickManifest;
}
declare module "spdx-satisfies" {
  function satisfies(expression: string, allowed: string[]): boolean;
  export = satisfies;
}
