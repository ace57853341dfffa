// Declarations for packages that have no types, as far as this project uses them.
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
