/** The module that types the config of an action. The service checks the fields. */
declare module "svc" {
  export function defineAction<Config extends object>(config: Config): Config;
}
