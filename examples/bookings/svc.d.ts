/** Module that types the config of an action. The type allows any fields: the service checks them. */
declare module "svc" {
  export function defineAction<Config extends object>(config: Config): Config;
}
