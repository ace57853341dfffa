-- Written by `npm run schema` from what migrations/ make of an empty database. Not to be edited, not to be run.

CREATE TABLE access_event (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  type text NOT NULL,
  organization_id bigint,
  person_id bigint,
  subject_id bigint,
  address text,
  data json NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT access_event_pkey PRIMARY KEY (id),
  CONSTRAINT access_event_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  CONSTRAINT access_event_person_id_fkey FOREIGN KEY (person_id) REFERENCES person(id) ON DELETE SET NULL,
  CONSTRAINT access_event_subject_id_fkey FOREIGN KEY (subject_id) REFERENCES person(id) ON DELETE SET NULL
);

CREATE INDEX access_event_organization ON public.access_event USING btree (organization_id, id DESC);
CREATE INDEX access_event_person ON public.access_event USING btree (person_id) WHERE (person_id IS NOT NULL);
CREATE INDEX access_event_subject ON public.access_event USING btree (subject_id) WHERE (subject_id IS NOT NULL);

CREATE TABLE action (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  app_id bigint NOT NULL,
  master_id bigint,
  name text NOT NULL,
  description text,
  code text NOT NULL,
  active boolean DEFAULT false NOT NULL,
  environment text NOT NULL,
  action_version text DEFAULT 'v3'::text NOT NULL,
  triggers json DEFAULT '[]'::json NOT NULL,
  dependencies json DEFAULT '[]'::json NOT NULL,
  assets json DEFAULT '[]'::json NOT NULL,
  frequency text,
  timezone text,
  last_run_at timestamp with time zone,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  concurrency json,
  debounce json,
  timeout_ms integer,
  integration_origins json DEFAULT '[]'::json NOT NULL,
  access json,
  jitter_seconds integer,
  source json,
  CONSTRAINT action_pkey PRIMARY KEY (id),
  CONSTRAINT action_master_id_key UNIQUE (master_id),
  CONSTRAINT action_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  CONSTRAINT action_master_id_fkey FOREIGN KEY (master_id) REFERENCES action(id) ON DELETE CASCADE,
  CONSTRAINT action_environment_check CHECK ((environment = ANY (ARRAY['server'::text, 'client'::text, 'any'::text])))
);

CREATE INDEX action_list ON public.action USING btree (app_id, id DESC) WHERE (master_id IS NULL);
CREATE UNIQUE INDEX action_name ON public.action USING btree (app_id, name, ((master_id IS NULL)));
CREATE TRIGGER action_changed AFTER INSERT OR DELETE OR UPDATE OF app_id, master_id, name, code, active, environment, action_version, triggers, assets ON public.action FOR EACH ROW EXECUTE FUNCTION svc_action_changed();
CREATE TRIGGER action_edited AFTER INSERT OR DELETE OR UPDATE OF updated_at ON public.action FOR EACH ROW EXECUTE FUNCTION svc_action_edited();
CREATE TRIGGER action_scripts_changed AFTER UPDATE OF assets ON public.action FOR EACH ROW WHEN (((old.assets)::text <> (new.assets)::text)) EXECUTE FUNCTION svc_note_scripts();
CREATE TRIGGER action_scripts_new AFTER INSERT ON public.action FOR EACH ROW WHEN (((new.assets)::text ~~ '%"sha256"%'::text)) EXECUTE FUNCTION svc_note_scripts();

CREATE TABLE action_version (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  action_id bigint NOT NULL,
  person_id bigint,
  data json NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  summary json NOT NULL,
  state bytea,
  published_at timestamp with time zone,
  commit_id text,
  CONSTRAINT action_version_pkey PRIMARY KEY (id),
  CONSTRAINT action_version_action_id_fkey FOREIGN KEY (action_id) REFERENCES action(id) ON DELETE CASCADE,
  CONSTRAINT action_version_person_id_fkey FOREIGN KEY (person_id) REFERENCES person(id) ON DELETE SET NULL
);

CREATE INDEX action_version_action ON public.action_version USING btree (action_id, id DESC);

CREATE TABLE ai_usage (
  app_id bigint NOT NULL,
  day date NOT NULL,
  requests bigint DEFAULT 0 NOT NULL,
  tokens bigint DEFAULT 0 NOT NULL,
  CONSTRAINT ai_usage_pkey PRIMARY KEY (app_id, day),
  CONSTRAINT ai_usage_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE
);

CREATE TABLE alert_cursor (
  one boolean DEFAULT true NOT NULL,
  looked_until timestamp with time zone NOT NULL,
  looked_at timestamp with time zone NOT NULL,
  CONSTRAINT alert_cursor_pkey PRIMARY KEY (one),
  CONSTRAINT alert_cursor_one_check CHECK (one)
);

CREATE TABLE alert_delivery (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  app_id bigint NOT NULL,
  rule_id bigint NOT NULL,
  channel text NOT NULL,
  setting text,
  body json NOT NULL,
  status text NOT NULL,
  detail text,
  attempts integer DEFAULT 0 NOT NULL,
  due_at timestamp with time zone,
  give_up_at timestamp with time zone NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT alert_delivery_pkey PRIMARY KEY (id),
  CONSTRAINT alert_delivery_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  CONSTRAINT alert_delivery_rule_id_fkey FOREIGN KEY (rule_id) REFERENCES alert_rule(id) ON DELETE CASCADE,
  CONSTRAINT alert_delivery_check CHECK (((status = 'queued'::text) = (due_at IS NOT NULL))),
  CONSTRAINT alert_delivery_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'sent'::text, 'failed'::text, 'outbox'::text])))
);

CREATE INDEX alert_delivery_due ON public.alert_delivery USING btree (due_at) WHERE (status = 'queued'::text);
CREATE INDEX alert_delivery_rule ON public.alert_delivery USING btree (rule_id, id DESC);

CREATE TABLE alert_rule (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  app_id bigint NOT NULL,
  name text NOT NULL,
  condition text NOT NULL,
  action_id bigint,
  failures smallint NOT NULL,
  of smallint NOT NULL,
  minutes integer NOT NULL,
  channel text NOT NULL,
  recipients text[] DEFAULT '{}'::text[] NOT NULL,
  setting text,
  enabled boolean NOT NULL,
  since timestamp with time zone DEFAULT now() NOT NULL,
  told_at timestamp with time zone[] DEFAULT '{}'::timestamp with time zone[] NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT alert_rule_pkey PRIMARY KEY (id),
  CONSTRAINT alert_rule_app_id_name_key UNIQUE (app_id, name),
  CONSTRAINT alert_rule_action_id_fkey FOREIGN KEY (action_id) REFERENCES action(id) ON DELETE CASCADE,
  CONSTRAINT alert_rule_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  CONSTRAINT alert_rule_channel_check CHECK ((channel = ANY (ARRAY['email'::text, 'webhook'::text, 'slack'::text]))),
  CONSTRAINT alert_rule_condition_check CHECK ((condition = ANY (ARRAY['failed'::text, 'silent'::text, 'skipped'::text, 'queued'::text])))
);

CREATE INDEX alert_rule_action ON public.alert_rule USING btree (action_id) WHERE (action_id IS NOT NULL);

CREATE TABLE alert_state (
  rule_id bigint NOT NULL,
  action_id bigint NOT NULL,
  outcomes text DEFAULT ''::text NOT NULL,
  last_success timestamp with time zone,
  firing boolean DEFAULT false NOT NULL,
  told boolean DEFAULT false NOT NULL,
  fired_at timestamp with time zone,
  reason text,
  run_id bigint,
  CONSTRAINT alert_state_pkey PRIMARY KEY (rule_id, action_id),
  CONSTRAINT alert_state_rule_id_fkey FOREIGN KEY (rule_id) REFERENCES alert_rule(id) ON DELETE CASCADE
);

CREATE TABLE app (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  organization_id bigint NOT NULL,
  name text NOT NULL,
  published_at timestamp with time zone,
  starting_page_id bigint,
  hooks json,
  is_template boolean DEFAULT false NOT NULL,
  dependencies json,
  icon text,
  is_system_template boolean DEFAULT false NOT NULL,
  is_hidden boolean DEFAULT false NOT NULL,
  data_key bytea,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  secrets_version bigint DEFAULT 0 NOT NULL,
  secrets_forgotten bigint DEFAULT 0 NOT NULL,
  schedules_paused_at timestamp with time zone,
  settings_updated_at timestamp with time zone,
  origins text[] DEFAULT '{}'::text[] NOT NULL,
  requires_tests boolean DEFAULT false NOT NULL,
  CONSTRAINT app_pkey PRIMARY KEY (id),
  CONSTRAINT app_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE
);

CREATE INDEX app_organization ON public.app USING btree (organization_id);
CREATE INDEX app_origins ON public.app USING gin (origins);

CREATE TABLE app_editor (
  app_id bigint NOT NULL,
  person_id bigint NOT NULL,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT app_editor_pkey PRIMARY KEY (app_id, person_id),
  CONSTRAINT app_editor_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  CONSTRAINT app_editor_person_id_fkey FOREIGN KEY (person_id) REFERENCES person(id) ON DELETE CASCADE
);

CREATE INDEX app_editor_person ON public.app_editor USING btree (person_id);

CREATE TABLE app_git (
  app_id bigint NOT NULL,
  provider text NOT NULL,
  url text NOT NULL,
  branch text NOT NULL,
  folder text NOT NULL,
  tag_pattern text,
  prune boolean NOT NULL,
  username text NOT NULL,
  sealed_token bytea,
  sealed_secret bytea NOT NULL,
  person_id bigint,
  credential_id bigint,
  branch_pulls bigint DEFAULT 0 NOT NULL,
  last_pull json,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  tag_pulls bigint DEFAULT 0 NOT NULL,
  published_tags text[] DEFAULT '{}'::text[] NOT NULL,
  CONSTRAINT app_git_pkey PRIMARY KEY (app_id),
  CONSTRAINT app_git_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  CONSTRAINT app_git_credential_id_fkey FOREIGN KEY (credential_id) REFERENCES credential(id) ON DELETE SET NULL,
  CONSTRAINT app_git_person_id_fkey FOREIGN KEY (person_id) REFERENCES person(id) ON DELETE SET NULL
);

CREATE INDEX app_git_credential ON public.app_git USING btree (credential_id) WHERE (credential_id IS NOT NULL);
CREATE INDEX app_git_person ON public.app_git USING btree (person_id) WHERE (person_id IS NOT NULL);

CREATE TABLE app_member (
  app_id bigint NOT NULL,
  person_id bigint NOT NULL,
  role text NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT app_member_pkey PRIMARY KEY (app_id, person_id),
  CONSTRAINT app_member_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  CONSTRAINT app_member_person_id_fkey FOREIGN KEY (person_id) REFERENCES person(id) ON DELETE CASCADE,
  CONSTRAINT app_member_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'operator'::text, 'reader'::text])))
);

CREATE INDEX app_member_person ON public.app_member USING btree (person_id);

CREATE TABLE app_stage (
  app_id bigint NOT NULL,
  root_id bigint NOT NULL,
  name text NOT NULL,
  expires_at timestamp with time zone,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT app_stage_pkey PRIMARY KEY (app_id),
  CONSTRAINT app_stage_root_id_name_key UNIQUE (root_id, name),
  CONSTRAINT app_stage_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  CONSTRAINT app_stage_root_id_fkey FOREIGN KEY (root_id) REFERENCES app(id) ON DELETE CASCADE
);

CREATE INDEX app_stage_expiry ON public.app_stage USING btree (expires_at) WHERE (expires_at IS NOT NULL);

CREATE TABLE app_user_failure (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  subject bytea NOT NULL,
  created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  CONSTRAINT app_user_failure_pkey PRIMARY KEY (id)
);

CREATE INDEX app_user_failure_age ON public.app_user_failure USING btree (created_at);
CREATE INDEX app_user_failure_subject ON public.app_user_failure USING btree (subject, created_at);

CREATE TABLE app_user_session (
  credential_id bigint NOT NULL,
  app_id bigint NOT NULL,
  data_source_id integer NOT NULL,
  entry_id bigint NOT NULL,
  columns jsonb NOT NULL,
  proof bytea NOT NULL,
  locale text,
  created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  verified jsonb DEFAULT '{}'::jsonb NOT NULL,
  pending boolean DEFAULT false NOT NULL,
  CONSTRAINT app_user_session_pkey PRIMARY KEY (credential_id),
  CONSTRAINT app_user_session_app_id_data_source_id_fkey FOREIGN KEY (app_id, data_source_id) REFERENCES data_source(app_id, id) ON DELETE CASCADE,
  CONSTRAINT app_user_session_credential_id_fkey FOREIGN KEY (credential_id) REFERENCES credential(id) ON DELETE CASCADE
);

CREATE INDEX app_user_session_data_source ON public.app_user_session USING btree (app_id, data_source_id);

CREATE TABLE app_version (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  app_id bigint NOT NULL,
  person_id bigint,
  data json NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  action text DEFAULT 'create'::text NOT NULL,
  CONSTRAINT app_version_pkey PRIMARY KEY (id),
  CONSTRAINT app_version_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  CONSTRAINT app_version_person_id_fkey FOREIGN KEY (person_id) REFERENCES person(id) ON DELETE SET NULL,
  CONSTRAINT app_version_action_check CHECK ((action = ANY (ARRAY['create'::text, 'publish'::text, 'pre-restore'::text])))
);

CREATE INDEX app_version_app ON public.app_version USING btree (app_id, id DESC);

CREATE TABLE app_version_setting (
  app_version_id bigint NOT NULL,
  key text NOT NULL,
  value text,
  sealed bytea,
  not_secret boolean DEFAULT false NOT NULL,
  CONSTRAINT app_version_setting_pkey PRIMARY KEY (app_version_id, key),
  CONSTRAINT app_version_setting_app_version_id_fkey FOREIGN KEY (app_version_id) REFERENCES app_version(id) ON DELETE CASCADE
);

CREATE TABLE audit_entry (
  id bigint DEFAULT nextval('audit_entry_id_seq'::regclass) NOT NULL,
  app_id bigint NOT NULL,
  type text NOT NULL,
  person_id bigint,
  credential_id bigint,
  action_id bigint,
  data json NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT audit_entry_pkey PRIMARY KEY (id)
) PARTITION BY RANGE (id);

CREATE INDEX audit_entry_app ON ONLY public.audit_entry USING btree (app_id, id DESC);
CREATE INDEX audit_entry_credential ON ONLY public.audit_entry USING btree (credential_id) WHERE (credential_id IS NOT NULL);

CREATE TABLE concurrency_due (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  action_id bigint NOT NULL,
  key bytea NOT NULL,
  at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT concurrency_due_pkey PRIMARY KEY (id)
);

CREATE INDEX concurrency_due_at ON public.concurrency_due USING btree (at);
CREATE INDEX concurrency_due_key ON public.concurrency_due USING btree (action_id, key);

CREATE TABLE console_line (
  run_id bigint NOT NULL,
  seq integer NOT NULL,
  level text NOT NULL,
  at timestamp with time zone NOT NULL,
  text text NOT NULL,
  CONSTRAINT console_line_pkey PRIMARY KEY (run_id, seq)
) PARTITION BY RANGE (run_id);

CREATE TABLE credential (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  kind text NOT NULL,
  hash bytea NOT NULL,
  name text,
  app_id bigint,
  person_id bigint,
  run_id bigint,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  page_session boolean DEFAULT false NOT NULL,
  parent_id bigint,
  action_id bigint,
  scopes text[],
  visitor_block bytea,
  last_used_at timestamp with time zone,
  last_used_address text,
  expiry_warned_at timestamp with time zone,
  grant_id bigint,
  CONSTRAINT credential_pkey PRIMARY KEY (id),
  CONSTRAINT credential_hash_key UNIQUE (hash),
  CONSTRAINT credential_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  CONSTRAINT credential_grant_id_fkey FOREIGN KEY (grant_id) REFERENCES oauth_grant(id) ON DELETE CASCADE,
  CONSTRAINT credential_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES credential(id) ON DELETE CASCADE,
  CONSTRAINT credential_person_id_fkey FOREIGN KEY (person_id) REFERENCES person(id) ON DELETE CASCADE,
  CONSTRAINT credential_check CHECK (
CASE
    WHEN (kind = ANY (ARRAY['editor'::text, 'admin'::text])) THEN ((app_id IS NULL) AND (person_id IS NOT NULL))
    ELSE (app_id IS NOT NULL)
END),
  CONSTRAINT credential_kind_check CHECK ((kind = ANY (ARRAY['editor'::text, 'admin'::text, 'api'::text, 'task'::text, 'viewer'::text, 'live'::text])))
);

CREATE INDEX credential_app ON public.credential USING btree (app_id);
CREATE INDEX credential_expiry ON public.credential USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX credential_grant ON public.credential USING btree (grant_id) WHERE (grant_id IS NOT NULL);
CREATE INDEX credential_parent ON public.credential USING btree (parent_id) WHERE (parent_id IS NOT NULL);
CREATE INDEX credential_person ON public.credential USING btree (person_id, app_id) WHERE (person_id IS NOT NULL);
CREATE INDEX credential_revoked ON public.credential USING btree (revoked_at) WHERE (revoked_at IS NOT NULL);
CREATE INDEX credential_visitor ON public.credential USING btree (app_id, id) WHERE (visitor_block IS NOT NULL);
CREATE INDEX credential_visitor_block ON public.credential USING btree (app_id, visitor_block, id) WHERE (visitor_block IS NOT NULL);

CREATE TABLE data_source (
  id integer GENERATED ALWAYS AS IDENTITY NOT NULL,
  app_id bigint NOT NULL,
  organization_id bigint NOT NULL,
  name text NOT NULL,
  columns jsonb DEFAULT '[]'::jsonb NOT NULL,
  access_rules jsonb DEFAULT '[]'::jsonb NOT NULL,
  hooks jsonb DEFAULT '[]'::jsonb NOT NULL,
  indexes jsonb DEFAULT '[]'::jsonb NOT NULL,
  created_at timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
  updated_at timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
  hashed_columns jsonb DEFAULT '[]'::jsonb NOT NULL,
  is_users boolean DEFAULT false NOT NULL,
  CONSTRAINT data_source_pkey PRIMARY KEY (app_id, id),
  CONSTRAINT data_source_app_id_name_key UNIQUE (app_id, name),
  CONSTRAINT data_source_id_key UNIQUE (id),
  CONSTRAINT data_source_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  CONSTRAINT data_source_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE
);

CREATE INDEX data_source_organization ON public.data_source USING btree (organization_id);

CREATE TABLE data_source_change (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  app_id bigint NOT NULL,
  data_source_id integer NOT NULL,
  bulk boolean NOT NULL,
  inserted bigint[] NOT NULL,
  replaced json NOT NULL,
  created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  CONSTRAINT data_source_change_pkey PRIMARY KEY (id),
  CONSTRAINT data_source_change_app_id_data_source_id_fkey FOREIGN KEY (app_id, data_source_id) REFERENCES data_source(app_id, id) ON DELETE CASCADE
);

CREATE INDEX data_source_change_age ON public.data_source_change USING btree (created_at);
CREATE INDEX data_source_change_newest ON public.data_source_change USING btree (app_id, data_source_id, id);

CREATE TABLE data_source_entry (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  app_id bigint NOT NULL,
  data_source_id integer NOT NULL,
  data json NOT NULL,
  doc jsonb GENERATED ALWAYS AS ((data)::jsonb) STORED NOT NULL,
  "order" double precision DEFAULT nextval('data_source_entry_order'::regclass) NOT NULL,
  created_at timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
  updated_at timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
  bytes integer GENERATED ALWAYS AS (octet_length((data)::text)) STORED NOT NULL,
  CONSTRAINT data_source_entry_pkey PRIMARY KEY (app_id, id),
  CONSTRAINT data_source_entry_app_id_data_source_id_fkey FOREIGN KEY (app_id, data_source_id) REFERENCES data_source(app_id, id) ON DELETE CASCADE,
  CONSTRAINT data_source_entry_data_check CHECK ((json_typeof(data) = 'object'::text))
);

CREATE INDEX data_source_entry_in_order ON public.data_source_entry USING btree (app_id, data_source_id, "order", id);

CREATE TABLE data_source_tally (
  app_id bigint NOT NULL,
  data_source_id integer NOT NULL,
  entries bigint DEFAULT 0 NOT NULL,
  bytes bigint DEFAULT 0 NOT NULL,
  forgotten bigint DEFAULT 0 NOT NULL,
  CONSTRAINT data_source_tally_pkey PRIMARY KEY (app_id, data_source_id),
  CONSTRAINT data_source_tally_app_id_data_source_id_fkey FOREIGN KEY (app_id, data_source_id) REFERENCES data_source(app_id, id) ON DELETE CASCADE
);

CREATE TABLE data_source_version (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  app_id bigint NOT NULL,
  data_source_id integer NOT NULL,
  user_id bigint,
  operation text NOT NULL,
  columns jsonb NOT NULL,
  entries integer NOT NULL,
  bytes bigint NOT NULL,
  created_at timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
  CONSTRAINT data_source_version_pkey PRIMARY KEY (app_id, id),
  CONSTRAINT data_source_version_app_id_data_source_id_fkey FOREIGN KEY (app_id, data_source_id) REFERENCES data_source(app_id, id) ON DELETE CASCADE
);

CREATE INDEX data_source_version_newest ON public.data_source_version USING btree (app_id, data_source_id, id);

CREATE TABLE data_source_version_part (
  app_id bigint NOT NULL,
  version_id bigint NOT NULL,
  part integer NOT NULL,
  content bytea NOT NULL,
  CONSTRAINT data_source_version_part_pkey PRIMARY KEY (app_id, version_id, part),
  CONSTRAINT data_source_version_part_app_id_version_id_fkey FOREIGN KEY (app_id, version_id) REFERENCES data_source_version(app_id, id) ON DELETE CASCADE
);

CREATE TABLE debounced_run (
  action_id bigint NOT NULL,
  sender text NOT NULL,
  run_id bigint NOT NULL,
  first_at timestamp with time zone NOT NULL,
  due_at timestamp with time zone NOT NULL,
  CONSTRAINT debounced_run_pkey PRIMARY KEY (action_id, sender)
);

CREATE INDEX debounced_run_due ON public.debounced_run USING btree (due_at);
CREATE INDEX debounced_run_run ON public.debounced_run USING btree (run_id);

CREATE TABLE declared_setting (
  app_id bigint NOT NULL,
  key text NOT NULL,
  not_secret boolean DEFAULT false NOT NULL,
  CONSTRAINT declared_setting_pkey PRIMARY KEY (app_id, key),
  CONSTRAINT declared_setting_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE
);

CREATE TABLE execution_log (
  id bigint DEFAULT nextval('execution_log_id_seq'::regclass) NOT NULL,
  app_id bigint NOT NULL,
  task_id bigint NOT NULL,
  run_id bigint NOT NULL,
  type text NOT NULL,
  data json NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  bytes integer GENERATED ALWAYS AS (octet_length((data)::text)) STORED,
  payload_at integer,
  CONSTRAINT execution_log_pkey PRIMARY KEY (id),
  CONSTRAINT execution_log_type_check CHECK ((type = ANY (ARRAY['app.task.completed'::text, 'app.task.failed'::text])))
) PARTITION BY RANGE (id);

CREATE INDEX execution_log_age ON ONLY public.execution_log USING btree (created_at);
CREATE INDEX execution_log_app ON ONLY public.execution_log USING btree (app_id, id DESC);
CREATE INDEX execution_log_failed ON ONLY public.execution_log USING btree (app_id, id DESC) WHERE (type = 'app.task.failed'::text);
CREATE INDEX execution_log_run ON ONLY public.execution_log USING btree (run_id);
CREATE INDEX execution_log_task ON ONLY public.execution_log USING btree (app_id, task_id, id DESC);

CREATE TABLE git_webhook (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  app_id bigint NOT NULL,
  ref text NOT NULL,
  holder uuid,
  claimed_at timestamp with time zone,
  attempts integer DEFAULT 0 NOT NULL,
  pull_number bigint,
  CONSTRAINT git_webhook_pkey PRIMARY KEY (id),
  CONSTRAINT git_webhook_app_id_fkey FOREIGN KEY (app_id) REFERENCES app_git(app_id) ON DELETE CASCADE
);

CREATE INDEX git_webhook_app ON public.git_webhook USING btree (app_id, id);
CREATE UNIQUE INDEX git_webhook_waiting ON public.git_webhook USING btree (app_id, ref) WHERE (holder IS NULL);

CREATE TABLE http_event (
  action_id bigint NOT NULL,
  key bytea NOT NULL,
  run_id bigint NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT http_event_pkey PRIMARY KEY (action_id, key),
  CONSTRAINT http_event_action_id_fkey FOREIGN KEY (action_id) REFERENCES action(id) ON DELETE CASCADE
);

CREATE INDEX http_event_age ON public.http_event USING btree (created_at);

CREATE TABLE http_refusal (
  action_id bigint NOT NULL,
  status text NOT NULL,
  reason text NOT NULL,
  refused bigint NOT NULL,
  last_at timestamp with time zone NOT NULL,
  last_address text,
  CONSTRAINT http_refusal_pkey PRIMARY KEY (action_id, status, reason),
  CONSTRAINT http_refusal_action_id_fkey FOREIGN KEY (action_id) REFERENCES action(id) ON DELETE CASCADE
);

CREATE TABLE http_route (
  app_id bigint NOT NULL,
  is_draft boolean NOT NULL,
  shape text NOT NULL,
  method text NOT NULL,
  action_id bigint NOT NULL,
  settings json NOT NULL,
  CONSTRAINT http_route_pkey PRIMARY KEY (app_id, is_draft, shape, method),
  CONSTRAINT http_route_action_id_fkey FOREIGN KEY (action_id) REFERENCES action(id) ON DELETE CASCADE,
  CONSTRAINT http_route_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE
);

CREATE INDEX http_route_action ON public.http_route USING btree (action_id);

CREATE TABLE http_secret (
  action_id bigint NOT NULL,
  sealed bytea NOT NULL,
  CONSTRAINT http_secret_pkey PRIMARY KEY (action_id),
  CONSTRAINT http_secret_action_id_fkey FOREIGN KEY (action_id) REFERENCES action(id) ON DELETE CASCADE
);

CREATE TABLE idempotency (
  credential_id bigint NOT NULL,
  app_id bigint NOT NULL,
  key text NOT NULL,
  request bytea NOT NULL,
  answer json,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT idempotency_pkey PRIMARY KEY (credential_id, app_id, key),
  CONSTRAINT idempotency_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  CONSTRAINT idempotency_credential_id_fkey FOREIGN KEY (credential_id) REFERENCES credential(id) ON DELETE CASCADE
);

CREATE INDEX idempotency_age ON public.idempotency USING btree (created_at);
CREATE INDEX idempotency_app ON public.idempotency USING btree (app_id);

CREATE TABLE instance (
  id uuid NOT NULL,
  roles text[] NOT NULL,
  started_at timestamp with time zone DEFAULT now() NOT NULL,
  lease_until timestamp with time zone NOT NULL,
  ignored_proxy text,
  CONSTRAINT instance_pkey PRIMARY KEY (id)
);

CREATE TABLE integration_token (
  app_id bigint NOT NULL,
  key text NOT NULL,
  origin text NOT NULL,
  basis text NOT NULL,
  sealed bytea,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT integration_token_pkey PRIMARY KEY (app_id, key, origin),
  CONSTRAINT integration_token_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE
);

CREATE TABLE invitation (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  link_id bigint NOT NULL,
  organization_id bigint NOT NULL,
  app_id bigint,
  email text NOT NULL,
  role text NOT NULL,
  CONSTRAINT invitation_pkey PRIMARY KEY (id),
  CONSTRAINT invitation_link_id_key UNIQUE (link_id),
  CONSTRAINT invitation_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  CONSTRAINT invitation_link_id_fkey FOREIGN KEY (link_id) REFERENCES one_time_link(id) ON DELETE CASCADE,
  CONSTRAINT invitation_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  CONSTRAINT invitation_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'editor'::text, 'operator'::text, 'reader'::text])))
);

CREATE INDEX invitation_app ON public.invitation USING btree (app_id) WHERE (app_id IS NOT NULL);
CREATE INDEX invitation_organization ON public.invitation USING btree (organization_id);

CREATE TABLE kept_script (
  sha256 text NOT NULL,
  source bytea NOT NULL,
  bytes integer GENERATED ALWAYS AS (octet_length(source)) STORED,
  package text,
  version text,
  licence text,
  global text,
  names json,
  parts json DEFAULT '[]'::json NOT NULL,
  touched_at timestamp with time zone DEFAULT now() NOT NULL,
  declarations bytea,
  declaration_bytes integer DEFAULT 0 NOT NULL,
  CONSTRAINT kept_script_pkey PRIMARY KEY (sha256)
);

CREATE INDEX kept_script_touched ON public.kept_script USING btree (touched_at);

CREATE TABLE kept_script_use (
  sha256 text NOT NULL,
  action_id bigint,
  action_version_id bigint,
  CONSTRAINT kept_script_use_action_id_fkey FOREIGN KEY (action_id) REFERENCES action(id) ON DELETE CASCADE,
  CONSTRAINT kept_script_use_action_version_id_fkey FOREIGN KEY (action_version_id) REFERENCES action_version(id) ON DELETE CASCADE,
  CONSTRAINT kept_script_use_sha256_fkey FOREIGN KEY (sha256) REFERENCES kept_script(sha256),
  CONSTRAINT kept_script_use_check CHECK (((action_id IS NULL) <> (action_version_id IS NULL)))
);

CREATE INDEX kept_script_use_action ON public.kept_script_use USING btree (action_id) WHERE (action_id IS NOT NULL);
CREATE INDEX kept_script_use_script ON public.kept_script_use USING btree (sha256);
CREATE INDEX kept_script_use_version ON public.kept_script_use USING btree (action_version_id) WHERE (action_version_id IS NOT NULL);

CREATE TABLE log_event (
  id bigint DEFAULT nextval('log_event_id_seq'::regclass) NOT NULL,
  app_id bigint NOT NULL,
  user_id bigint,
  data_source_id bigint,
  data_source_entry_id bigint,
  app_notification_id bigint,
  session_id bigint,
  request_id uuid NOT NULL,
  run_id bigint,
  type text NOT NULL,
  data json NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT log_event_pkey PRIMARY KEY (id)
) PARTITION BY RANGE (id);

CREATE INDEX log_event_app ON ONLY public.log_event USING btree (app_id, id DESC);

CREATE TABLE log_trigger (
  app_id bigint NOT NULL,
  type text NOT NULL,
  data_source_id bigint NOT NULL,
  action_id bigint NOT NULL,
  waits_for text,
  CONSTRAINT log_trigger_pkey PRIMARY KEY (app_id, type, data_source_id, action_id),
  CONSTRAINT log_trigger_action_id_fkey FOREIGN KEY (action_id) REFERENCES action(id) ON DELETE CASCADE,
  CONSTRAINT log_trigger_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE
);

CREATE INDEX log_trigger_action ON public.log_trigger USING btree (action_id);

CREATE TABLE media_blob (
  key text NOT NULL,
  app_id bigint NOT NULL,
  bytes bigint NOT NULL,
  held_until timestamp with time zone,
  lost_at timestamp with time zone,
  CONSTRAINT media_blob_pkey PRIMARY KEY (key),
  CONSTRAINT media_blob_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE
);

CREATE INDEX media_blob_held ON public.media_blob USING btree (held_until) WHERE (held_until IS NOT NULL);

CREATE TABLE media_file (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  app_id bigint NOT NULL,
  folder_id bigint,
  name text NOT NULL,
  content_type text NOT NULL,
  bytes bigint NOT NULL,
  checksum text NOT NULL,
  width integer,
  height integer,
  blob_key text NOT NULL,
  thumbnail_key text,
  access_rules json,
  user_id bigint,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT media_file_pkey PRIMARY KEY (id),
  CONSTRAINT media_file_blob_key_key UNIQUE (blob_key),
  CONSTRAINT media_file_thumbnail_key_key UNIQUE (thumbnail_key),
  CONSTRAINT media_file_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  CONSTRAINT media_file_app_id_folder_id_fkey FOREIGN KEY (app_id, folder_id) REFERENCES media_folder(app_id, id),
  CONSTRAINT media_file_blob_key_fkey FOREIGN KEY (blob_key) REFERENCES media_blob(key),
  CONSTRAINT media_file_thumbnail_key_fkey FOREIGN KEY (thumbnail_key) REFERENCES media_blob(key)
);

CREATE INDEX media_file_folder ON public.media_file USING btree (app_id, COALESCE(folder_id, (0)::bigint), name, id);

CREATE TABLE media_folder (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  app_id bigint NOT NULL,
  parent_id bigint,
  name text NOT NULL,
  access_rules json,
  user_id bigint,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT media_folder_pkey PRIMARY KEY (id),
  CONSTRAINT media_folder_app_id_id_key UNIQUE (app_id, id),
  CONSTRAINT media_folder_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  CONSTRAINT media_folder_app_id_parent_id_fkey FOREIGN KEY (app_id, parent_id) REFERENCES media_folder(app_id, id)
);

CREATE UNIQUE INDEX media_folder_name ON public.media_folder USING btree (app_id, COALESCE(parent_id, (0)::bigint), name);

CREATE TABLE media_orphan (
  key text NOT NULL,
  found_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT media_orphan_pkey PRIMARY KEY (key)
);

CREATE TABLE media_store (
  one boolean DEFAULT true NOT NULL,
  space text NOT NULL,
  identity text,
  CONSTRAINT media_store_pkey PRIMARY KEY (one),
  CONSTRAINT media_store_one_check CHECK (one)
);

CREATE TABLE media_usage (
  app_id bigint NOT NULL,
  bytes bigint NOT NULL,
  CONSTRAINT media_usage_pkey PRIMARY KEY (app_id),
  CONSTRAINT media_usage_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  CONSTRAINT media_usage_bytes_check CHECK ((bytes >= 0))
);

CREATE TABLE message (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  app_id bigint NOT NULL,
  kind text NOT NULL,
  status text NOT NULL,
  content json NOT NULL,
  recipients jsonb NOT NULL,
  reference uuid NOT NULL,
  provider_id text,
  detail text,
  attempts integer DEFAULT 0 NOT NULL,
  due_at timestamp with time zone,
  give_up_at timestamp with time zone,
  delayed_at timestamp with time zone,
  holder uuid,
  claimed_at timestamp with time zone,
  handed_at timestamp with time zone,
  run_id bigint,
  person_id bigint,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  bytes integer GENERATED ALWAYS AS ((octet_length((content)::text) + octet_length((recipients)::text))) STORED,
  CONSTRAINT message_pkey PRIMARY KEY (id),
  CONSTRAINT message_reference_key UNIQUE (reference),
  CONSTRAINT message_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  CONSTRAINT message_check CHECK (((status = 'queued'::text) OR ((due_at IS NULL) AND (holder IS NULL)))),
  CONSTRAINT message_check1 CHECK (((status <> 'queued'::text) OR (due_at IS NOT NULL))),
  CONSTRAINT message_kind_check CHECK ((kind = ANY (ARRAY['email'::text, 'sms'::text]))),
  CONSTRAINT message_status_check CHECK ((status = ANY (ARRAY['kept'::text, 'queued'::text, 'sent'::text, 'delivered'::text, 'rejected'::text, 'bounced'::text, 'complained'::text, 'failed'::text, 'unknown'::text])))
);

CREATE INDEX message_app ON public.message USING btree (app_id, id DESC);
CREATE INDEX message_created ON public.message USING btree (created_at) WHERE (status <> 'queued'::text);
CREATE INDEX message_due ON public.message USING btree (app_id, due_at) WHERE ((status = 'queued'::text) AND (holder IS NULL));
CREATE INDEX message_held ON public.message USING btree (holder) WHERE (holder IS NOT NULL);
CREATE INDEX message_next ON public.message USING btree (due_at) WHERE ((status = 'queued'::text) AND (holder IS NULL));
CREATE UNIQUE INDEX message_provider ON public.message USING btree (app_id, provider_id) WHERE (provider_id IS NOT NULL);

CREATE TABLE migration (
  id integer DEFAULT nextval('migration_id_seq'::regclass) NOT NULL,
  "timestamp" bigint NOT NULL,
  name character varying NOT NULL,
  CONSTRAINT "PK_3043fc6b8af7c99b8b98830094f" PRIMARY KEY (id)
);

CREATE TABLE notification (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  app_id bigint NOT NULL,
  status text NOT NULL,
  data jsonb NOT NULL,
  scope jsonb,
  order_at timestamp with time zone,
  push jsonb,
  push_at timestamp with time zone,
  cursor bigint,
  published_at timestamp with time zone,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  bytes integer GENERATED ALWAYS AS (((octet_length((data)::text) + COALESCE(octet_length((scope)::text), 0)) + COALESCE(octet_length((push)::text), 0))) STORED,
  CONSTRAINT notification_pkey PRIMARY KEY (id),
  CONSTRAINT notification_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  CONSTRAINT notification_check CHECK (((status <> 'scheduled'::text) OR (order_at IS NOT NULL))),
  CONSTRAINT notification_check1 CHECK (((status = 'published'::text) = (cursor IS NOT NULL))),
  CONSTRAINT notification_status_check CHECK ((status = ANY (ARRAY['draft'::text, 'published'::text, 'scheduled'::text])))
);

CREATE INDEX notification_app ON public.notification USING btree (app_id, id DESC);
CREATE UNIQUE INDEX notification_cursor ON public.notification USING btree (app_id, cursor) WHERE (cursor IS NOT NULL);
CREATE INDEX notification_due ON public.notification USING btree (order_at) WHERE (status = 'scheduled'::text);
CREATE INDEX notification_push ON public.notification USING btree (push_at) WHERE (push_at IS NOT NULL);

CREATE TABLE notification_place (
  app_id bigint NOT NULL,
  cursor bigint NOT NULL,
  CONSTRAINT notification_place_pkey PRIMARY KEY (app_id),
  CONSTRAINT notification_place_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE
);

CREATE TABLE notification_read (
  notification_id bigint NOT NULL,
  reader text NOT NULL,
  read_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT notification_read_pkey PRIMARY KEY (notification_id, reader),
  CONSTRAINT notification_read_notification_id_fkey FOREIGN KEY (notification_id) REFERENCES notification(id) ON DELETE CASCADE
);

CREATE TABLE notification_read_all (
  app_id bigint NOT NULL,
  reader text NOT NULL,
  cursor bigint NOT NULL,
  read_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT notification_read_all_pkey PRIMARY KEY (app_id, reader),
  CONSTRAINT notification_read_all_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE
);

CREATE TABLE oauth_client (
  id text NOT NULL,
  name text NOT NULL,
  redirect_uris json NOT NULL,
  grant_types json NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT oauth_client_pkey PRIMARY KEY (id)
);

CREATE INDEX oauth_client_age ON public.oauth_client USING btree (created_at);

CREATE TABLE oauth_device (
  hash bytea NOT NULL,
  user_code text NOT NULL,
  client_id text NOT NULL,
  scopes text[] NOT NULL,
  app_id bigint,
  grant_id bigint,
  is_denied boolean DEFAULT false NOT NULL,
  polled_at timestamp with time zone,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT oauth_device_pkey PRIMARY KEY (hash),
  CONSTRAINT oauth_device_user_code_key UNIQUE (user_code),
  CONSTRAINT oauth_device_client_id_fkey FOREIGN KEY (client_id) REFERENCES oauth_client(id) ON DELETE CASCADE,
  CONSTRAINT oauth_device_grant_id_fkey FOREIGN KEY (grant_id) REFERENCES oauth_grant(id) ON DELETE CASCADE
);

CREATE INDEX oauth_device_client ON public.oauth_device USING btree (client_id);
CREATE INDEX oauth_device_expiry ON public.oauth_device USING btree (expires_at);
CREATE INDEX oauth_device_grant ON public.oauth_device USING btree (grant_id) WHERE (grant_id IS NOT NULL);

CREATE TABLE oauth_grant (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  client_id text NOT NULL,
  person_id bigint NOT NULL,
  app_id bigint NOT NULL,
  scopes text[] NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  last_used_at timestamp with time zone,
  revoked_at timestamp with time zone,
  maker_id bigint,
  CONSTRAINT oauth_grant_pkey PRIMARY KEY (id),
  CONSTRAINT oauth_grant_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  CONSTRAINT oauth_grant_client_id_fkey FOREIGN KEY (client_id) REFERENCES oauth_client(id) ON DELETE CASCADE,
  CONSTRAINT oauth_grant_maker_id_fkey FOREIGN KEY (maker_id) REFERENCES credential(id) ON DELETE CASCADE,
  CONSTRAINT oauth_grant_person_id_fkey FOREIGN KEY (person_id) REFERENCES person(id) ON DELETE CASCADE
);

CREATE INDEX oauth_grant_app ON public.oauth_grant USING btree (app_id);
CREATE INDEX oauth_grant_client ON public.oauth_grant USING btree (client_id);
CREATE INDEX oauth_grant_maker ON public.oauth_grant USING btree (maker_id) WHERE (maker_id IS NOT NULL);
CREATE INDEX oauth_grant_person ON public.oauth_grant USING btree (person_id);

CREATE TABLE oauth_secret (
  hash bytea NOT NULL,
  kind text NOT NULL,
  grant_id bigint NOT NULL,
  redirect_uri text,
  code_challenge text,
  expires_at timestamp with time zone NOT NULL,
  used_at timestamp with time zone,
  CONSTRAINT oauth_secret_pkey PRIMARY KEY (hash),
  CONSTRAINT oauth_secret_grant_id_fkey FOREIGN KEY (grant_id) REFERENCES oauth_grant(id) ON DELETE CASCADE,
  CONSTRAINT oauth_secret_kind_check CHECK ((kind = ANY (ARRAY['code'::text, 'refresh'::text])))
);

CREATE INDEX oauth_secret_expiry ON public.oauth_secret USING btree (expires_at);
CREATE INDEX oauth_secret_grant ON public.oauth_secret USING btree (grant_id);

CREATE TABLE one_time_link (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  kind text NOT NULL,
  hash bytea NOT NULL,
  person_id bigint,
  created_by bigint,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  used_at timestamp with time zone,
  revoked_at timestamp with time zone,
  CONSTRAINT one_time_link_pkey PRIMARY KEY (id),
  CONSTRAINT one_time_link_hash_key UNIQUE (hash),
  CONSTRAINT one_time_link_created_by_fkey FOREIGN KEY (created_by) REFERENCES person(id) ON DELETE SET NULL,
  CONSTRAINT one_time_link_person_id_fkey FOREIGN KEY (person_id) REFERENCES person(id) ON DELETE CASCADE,
  CONSTRAINT one_time_link_kind_check CHECK ((kind = ANY (ARRAY['setup'::text, 'invitation'::text, 'reset'::text])))
);

CREATE INDEX one_time_link_author ON public.one_time_link USING btree (created_by) WHERE (created_by IS NOT NULL);
CREATE INDEX one_time_link_expiry ON public.one_time_link USING btree (expires_at);
CREATE INDEX one_time_link_person ON public.one_time_link USING btree (person_id) WHERE (person_id IS NOT NULL);

CREATE TABLE organization (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  name text NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT organization_pkey PRIMARY KEY (id)
);

CREATE TABLE organization_member (
  organization_id bigint NOT NULL,
  person_id bigint NOT NULL,
  role text NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT organization_member_pkey PRIMARY KEY (organization_id, person_id),
  CONSTRAINT organization_member_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  CONSTRAINT organization_member_person_id_fkey FOREIGN KEY (person_id) REFERENCES person(id) ON DELETE CASCADE,
  CONSTRAINT organization_member_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'editor'::text, 'operator'::text, 'reader'::text])))
);

CREATE INDEX organization_member_person ON public.organization_member USING btree (person_id);

CREATE TABLE package_choice (
  registry text NOT NULL,
  spec text NOT NULL,
  sha256 text NOT NULL,
  chosen_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT package_choice_pkey PRIMARY KEY (registry, spec),
  CONSTRAINT package_choice_sha256_fkey FOREIGN KEY (sha256) REFERENCES kept_script(sha256) ON DELETE CASCADE
);

CREATE INDEX package_choice_script ON public.package_choice USING btree (sha256);

CREATE TABLE passkey (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  person_id bigint NOT NULL,
  credential_id text NOT NULL,
  public_key bytea NOT NULL,
  counter bigint NOT NULL,
  transports json NOT NULL,
  name text NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  last_used_at timestamp with time zone,
  CONSTRAINT passkey_pkey PRIMARY KEY (id),
  CONSTRAINT passkey_credential_id_key UNIQUE (credential_id),
  CONSTRAINT passkey_person_id_fkey FOREIGN KEY (person_id) REFERENCES person(id) ON DELETE CASCADE
);

CREATE INDEX passkey_person ON public.passkey USING btree (person_id);

CREATE TABLE passkey_challenge (
  hash bytea NOT NULL,
  session_id bigint,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT passkey_challenge_pkey PRIMARY KEY (hash),
  CONSTRAINT passkey_challenge_session_id_fkey FOREIGN KEY (session_id) REFERENCES credential(id) ON DELETE CASCADE
);

CREATE INDEX passkey_challenge_expiry ON public.passkey_challenge USING btree (expires_at);
CREATE INDEX passkey_challenge_session ON public.passkey_challenge USING btree (session_id) WHERE (session_id IS NOT NULL);

CREATE TABLE payload_preset (
  action_id bigint NOT NULL,
  name text NOT NULL,
  payload json NOT NULL,
  person_id bigint,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT payload_preset_pkey PRIMARY KEY (action_id, name),
  CONSTRAINT payload_preset_action_id_fkey FOREIGN KEY (action_id) REFERENCES action(id) ON DELETE CASCADE,
  CONSTRAINT payload_preset_person_id_fkey FOREIGN KEY (person_id) REFERENCES person(id) ON DELETE SET NULL
);

CREATE INDEX payload_preset_person ON public.payload_preset USING btree (person_id) WHERE (person_id IS NOT NULL);

CREATE TABLE person (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  organization_id bigint NOT NULL,
  first_name text NOT NULL,
  last_name text NOT NULL,
  email text NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  passphrase_hash text,
  is_administrator boolean DEFAULT false NOT NULL,
  last_seen_at timestamp with time zone,
  administrator_since timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT person_pkey PRIMARY KEY (id),
  CONSTRAINT person_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE
);

CREATE UNIQUE INDEX person_email ON public.person USING btree (lower(email));

CREATE TABLE person_identity (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  person_id bigint NOT NULL,
  issuer text NOT NULL,
  subject text NOT NULL,
  provider text NOT NULL,
  manages_roles boolean NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  last_used_at timestamp with time zone,
  CONSTRAINT person_identity_pkey PRIMARY KEY (id),
  CONSTRAINT person_identity_issuer_subject_key UNIQUE (issuer, subject),
  CONSTRAINT person_identity_person_id_fkey FOREIGN KEY (person_id) REFERENCES person(id) ON DELETE CASCADE
);

CREATE INDEX person_identity_person ON public.person_identity USING btree (person_id);

CREATE TABLE person_session (
  credential_id bigint NOT NULL,
  person_id bigint NOT NULL,
  is_provisional boolean DEFAULT false NOT NULL,
  device text NOT NULL,
  address text,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  last_used_at timestamp with time zone DEFAULT now() NOT NULL,
  provider text,
  CONSTRAINT person_session_pkey PRIMARY KEY (credential_id),
  CONSTRAINT person_session_credential_id_fkey FOREIGN KEY (credential_id) REFERENCES credential(id) ON DELETE CASCADE,
  CONSTRAINT person_session_person_id_fkey FOREIGN KEY (person_id) REFERENCES person(id) ON DELETE CASCADE
);

CREATE INDEX person_session_person ON public.person_session USING btree (person_id);

CREATE TABLE promotion (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  app_id bigint NOT NULL,
  from_app_id bigint,
  rolled_back_to bigint,
  person_id bigint,
  plan json NOT NULL,
  before bytea NOT NULL,
  after bytea NOT NULL,
  created_at timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
  CONSTRAINT promotion_pkey PRIMARY KEY (id),
  CONSTRAINT promotion_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE
);

CREATE INDEX promotion_app ON public.promotion USING btree (app_id, id);

CREATE TABLE push_delivery (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  notification_id bigint NOT NULL,
  subscription_id bigint NOT NULL,
  attempts integer DEFAULT 0 NOT NULL,
  due_at timestamp with time zone NOT NULL,
  holder uuid,
  claimed_at timestamp with time zone,
  CONSTRAINT push_delivery_pkey PRIMARY KEY (id),
  CONSTRAINT push_delivery_notification_id_fkey FOREIGN KEY (notification_id) REFERENCES notification(id) ON DELETE CASCADE,
  CONSTRAINT push_delivery_subscription_id_fkey FOREIGN KEY (subscription_id) REFERENCES push_subscription(id) ON DELETE CASCADE
);

CREATE INDEX push_delivery_due ON public.push_delivery USING btree (due_at);
CREATE INDEX push_delivery_held ON public.push_delivery USING btree (holder) WHERE (holder IS NOT NULL);
CREATE INDEX push_delivery_notification ON public.push_delivery USING btree (notification_id);
CREATE INDEX push_delivery_subscription ON public.push_delivery USING btree (subscription_id);

CREATE TABLE push_subscription (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  app_id bigint NOT NULL,
  reader text NOT NULL,
  endpoint text NOT NULL,
  p256dh text NOT NULL,
  auth text NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  credential_id bigint,
  visitor_block bytea,
  CONSTRAINT push_subscription_pkey PRIMARY KEY (id),
  CONSTRAINT push_subscription_app_id_endpoint_key UNIQUE (app_id, endpoint),
  CONSTRAINT push_subscription_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  CONSTRAINT push_subscription_credential_id_fkey FOREIGN KEY (credential_id) REFERENCES credential(id) ON DELETE SET NULL
);

CREATE INDEX push_subscription_credential ON public.push_subscription USING btree (credential_id) WHERE (credential_id IS NOT NULL);
CREATE INDEX push_subscription_reader ON public.push_subscription USING btree (app_id, reader);
CREATE INDEX push_subscription_visitor ON public.push_subscription USING btree (app_id, id) WHERE (reader ~~ 'credential:%'::text);
CREATE INDEX push_subscription_visitor_block ON public.push_subscription USING btree (app_id, visitor_block, id) WHERE (visitor_block IS NOT NULL);

CREATE UNLOGGED TABLE rate_window (
  app_id bigint NOT NULL,
  class text NOT NULL,
  hits timestamp with time zone[] NOT NULL,
  CONSTRAINT rate_window_pkey PRIMARY KEY (app_id, class)
);

CREATE TABLE replaced_setting (
  app_id bigint NOT NULL,
  key text NOT NULL,
  sealed bytea NOT NULL,
  version bigint NOT NULL,
  replaced_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT replaced_setting_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE
);

CREATE INDEX replaced_setting_app ON public.replaced_setting USING btree (app_id, version);

CREATE TABLE run (
  id bigint DEFAULT nextval('run_id_seq'::regclass) NOT NULL,
  app_id bigint NOT NULL,
  action_id bigint NOT NULL,
  copy text NOT NULL,
  trigger text NOT NULL,
  payload json,
  state text NOT NULL,
  holder uuid,
  person_id bigint,
  credential_id bigint,
  idempotency_key text,
  queued_at timestamp with time zone DEFAULT now() NOT NULL,
  started_at timestamp with time zone,
  finished_at timestamp with time zone,
  tick timestamp with time zone,
  tick_count integer DEFAULT 1 NOT NULL,
  reason text,
  event_id bigint,
  cause_run_id bigint,
  chain_id bigint,
  depth smallint DEFAULT 0 NOT NULL,
  replay_of bigint,
  version_id bigint,
  hosts text[] DEFAULT '{}'::text[] NOT NULL,
  payload_bytes integer GENERATED ALWAYS AS (octet_length((payload)::text)) STORED,
  log_id bigint,
  waits_for text,
  ready_at timestamp with time zone,
  sandbox text,
  requests json,
  CONSTRAINT run_pkey PRIMARY KEY (id),
  CONSTRAINT run_check CHECK (((state = 'running'::text) = (holder IS NOT NULL))),
  CONSTRAINT run_check1 CHECK (((state = ANY (ARRAY['queued'::text, 'running'::text])) = (finished_at IS NULL))),
  CONSTRAINT run_check2 CHECK (((state = 'skipped'::text) = (reason IS NOT NULL))),
  CONSTRAINT run_copy_check CHECK ((copy = ANY (ARRAY['master'::text, 'production'::text]))),
  CONSTRAINT run_payload CHECK (((payload IS NOT NULL) OR (event_id IS NOT NULL))),
  CONSTRAINT run_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'running'::text, 'completed'::text, 'failed'::text, 'skipped'::text, 'cancelled'::text])))
) PARTITION BY RANGE (id);

CREATE INDEX run_action ON ONLY public.run USING btree (action_id, id DESC);
CREATE INDEX run_app ON ONLY public.run USING btree (app_id, id DESC);
CREATE INDEX run_chain ON ONLY public.run USING btree (chain_id, queued_at) WHERE (chain_id IS NOT NULL);
CREATE INDEX run_credential ON ONLY public.run USING btree (credential_id) WHERE (credential_id IS NOT NULL);
CREATE INDEX run_event ON ONLY public.run USING btree (event_id) WHERE (event_id IS NOT NULL);
CREATE INDEX run_finished ON ONLY public.run USING btree (finished_at) WHERE (finished_at IS NOT NULL);
CREATE INDEX run_gone_wrong ON ONLY public.run USING btree (app_id, id DESC) WHERE (state = ANY (ARRAY['failed'::text, 'skipped'::text, 'cancelled'::text]));
CREATE INDEX run_holder ON ONLY public.run USING btree (holder) WHERE (holder IS NOT NULL);
CREATE INDEX run_live ON ONLY public.run USING btree (state, id) WHERE (finished_at IS NULL);
CREATE INDEX run_queued ON ONLY public.run USING btree (app_id, id) WHERE (state = 'queued'::text);
CREATE INDEX run_ready ON ONLY public.run USING btree (app_id, id) WHERE ((state = 'queued'::text) AND (waits_for IS NULL));
CREATE INDEX run_scheduled ON ONLY public.run USING btree (action_id) WHERE ((trigger = 'schedule'::text) AND (finished_at IS NULL));
CREATE INDEX run_scheduled_tick ON ONLY public.run USING btree (action_id, tick) WHERE (tick IS NOT NULL);
CREATE INDEX run_time ON ONLY public.run USING btree (app_id, queued_at);
CREATE TRIGGER run_debounced BEFORE INSERT ON public.run FOR EACH ROW WHEN (((new.waits_for = 'debounce'::text) AND (new.state = 'queued'::text))) EXECUTE FUNCTION svc_run_debounced();
CREATE TRIGGER run_joins_limit BEFORE INSERT ON public.run FOR EACH ROW WHEN (((new.waits_for = 'concurrency'::text) AND (new.state = 'queued'::text))) EXECUTE FUNCTION svc_run_counted();
CREATE TRIGGER run_waits_no_more AFTER UPDATE OF finished_at ON public.run FOR EACH ROW WHEN (((old.finished_at IS NULL) AND (new.finished_at IS NOT NULL) AND ((old.waits_for IS NOT NULL) OR (old.ready_at IS NOT NULL)))) EXECUTE FUNCTION svc_run_waits_no_more();

CREATE TABLE run_concurrency (
  run_id bigint NOT NULL,
  action_id bigint NOT NULL,
  key bytea NOT NULL,
  policy text NOT NULL,
  admitted boolean DEFAULT false NOT NULL,
  CONSTRAINT run_concurrency_pkey PRIMARY KEY (run_id)
);

CREATE INDEX run_concurrency_key ON public.run_concurrency USING btree (action_id, key, admitted, run_id);

CREATE TABLE run_key (
  action_id bigint NOT NULL,
  credential_id bigint NOT NULL,
  key text NOT NULL,
  run_id bigint NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT run_key_pkey PRIMARY KEY (action_id, credential_id, key),
  CONSTRAINT run_key_credential_id_fkey FOREIGN KEY (credential_id) REFERENCES credential(id) ON DELETE CASCADE
);

CREATE INDEX run_key_age ON public.run_key USING btree (created_at);
CREATE INDEX run_key_credential ON public.run_key USING btree (credential_id);

CREATE TABLE run_search (
  run_id bigint NOT NULL,
  words tsvector NOT NULL,
  CONSTRAINT run_search_pkey PRIMARY KEY (run_id)
) PARTITION BY RANGE (run_id);

CREATE INDEX run_search_words ON ONLY public.run_search USING gin (words) WITH (gin_pending_list_limit='512');

CREATE TABLE run_search_mark (
  only_row boolean DEFAULT true NOT NULL,
  newest timestamp with time zone DEFAULT now() NOT NULL,
  oldest timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT run_search_mark_pkey PRIMARY KEY (only_row),
  CONSTRAINT run_search_mark_only_row_check CHECK (only_row)
);

CREATE TABLE run_trace (
  run_id bigint NOT NULL,
  traceparent text NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT run_trace_pkey PRIMARY KEY (run_id)
);

CREATE INDEX run_trace_created ON public.run_trace USING btree (created_at);

CREATE TABLE schedule (
  action_id bigint NOT NULL,
  app_id bigint NOT NULL,
  frequency text NOT NULL,
  timezone text,
  next_tick timestamp with time zone NOT NULL,
  offset_ms integer,
  CONSTRAINT schedule_pkey PRIMARY KEY (action_id),
  CONSTRAINT schedule_action_id_fkey FOREIGN KEY (action_id) REFERENCES action(id) ON DELETE CASCADE,
  CONSTRAINT schedule_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE
);

CREATE INDEX schedule_app ON public.schedule USING btree (app_id);
CREATE INDEX schedule_next_tick ON public.schedule USING btree (next_tick);

CREATE TABLE sealed_setting (
  app_id bigint NOT NULL,
  key text NOT NULL,
  CONSTRAINT sealed_setting_pkey PRIMARY KEY (app_id, key),
  CONSTRAINT sealed_setting_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE
);

CREATE TABLE secret_bindings (
  app_id bigint NOT NULL,
  bindings json NOT NULL,
  updated_at timestamp with time zone DEFAULT date_trunc('milliseconds'::text, clock_timestamp()) NOT NULL,
  CONSTRAINT secret_bindings_pkey PRIMARY KEY (app_id),
  CONSTRAINT secret_bindings_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE
);

CREATE TABLE setting (
  app_id bigint NOT NULL,
  key text NOT NULL,
  value text,
  sealed bytea,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  updated_by bigint,
  not_secret boolean DEFAULT false NOT NULL,
  CONSTRAINT setting_pkey PRIMARY KEY (app_id, key),
  CONSTRAINT setting_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  CONSTRAINT setting_updated_by_fkey FOREIGN KEY (updated_by) REFERENCES person(id) ON DELETE SET NULL,
  CONSTRAINT setting_check CHECK (
CASE
    WHEN ("left"(key, 1) = '_'::text) THEN ((value IS NULL) AND (sealed IS NOT NULL))
    ELSE ((value IS NOT NULL) AND (sealed IS NULL))
END),
  CONSTRAINT setting_check1 CHECK (((NOT not_secret) OR (("left"(key, 1) = '_'::text) AND ("left"(key, 2) <> '__'::text))))
);

CREATE TRIGGER secrets_deleted AFTER DELETE ON public.setting REFERENCING OLD TABLE AS replaced FOR EACH STATEMENT EXECUTE FUNCTION svc_secrets_replaced();
CREATE TRIGGER secrets_inserted AFTER INSERT ON public.setting REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION svc_secrets_written();
CREATE TRIGGER secrets_updated AFTER UPDATE ON public.setting REFERENCING OLD TABLE AS replaced FOR EACH STATEMENT EXECUTE FUNCTION svc_secrets_replaced();

CREATE TABLE settings_key (
  only_row boolean DEFAULT true NOT NULL,
  fingerprint text NOT NULL,
  CONSTRAINT settings_key_pkey PRIMARY KEY (only_row),
  CONSTRAINT settings_key_only_row_check CHECK (only_row)
);

CREATE TABLE sign_in_failure (
  subject bytea NOT NULL,
  failures timestamp with time zone[] NOT NULL,
  level integer DEFAULT 0 NOT NULL,
  blocked_until timestamp with time zone,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT sign_in_failure_pkey PRIMARY KEY (subject)
);

CREATE INDEX sign_in_failure_age ON public.sign_in_failure USING btree (updated_at);

CREATE TABLE vapid_key (
  app_id bigint NOT NULL,
  public_key text NOT NULL,
  sealed bytea NOT NULL,
  CONSTRAINT vapid_key_pkey PRIMARY KEY (app_id),
  CONSTRAINT vapid_key_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE
);

CREATE TABLE verification_code (
  credential_id bigint NOT NULL,
  app_id bigint NOT NULL,
  subject bytea NOT NULL,
  data_source_id integer NOT NULL,
  entry_id bigint,
  address text NOT NULL,
  code bytea NOT NULL,
  failures integer DEFAULT 0 NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT verification_code_pkey PRIMARY KEY (credential_id),
  CONSTRAINT verification_code_app_id_data_source_id_fkey FOREIGN KEY (app_id, data_source_id) REFERENCES data_source(app_id, id) ON DELETE CASCADE,
  CONSTRAINT verification_code_credential_id_fkey FOREIGN KEY (credential_id) REFERENCES credential(id) ON DELETE CASCADE
);

CREATE INDEX verification_code_data_source ON public.verification_code USING btree (app_id, data_source_id);

CREATE TABLE verification_request (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  subject bytea NOT NULL,
  created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  CONSTRAINT verification_request_pkey PRIMARY KEY (id)
);

CREATE INDEX verification_request_age ON public.verification_request USING btree (created_at);
CREATE INDEX verification_request_subject ON public.verification_request USING btree (subject, created_at);

CREATE OR REPLACE FUNCTION public.svc_action_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
        BEGIN
          IF TG_OP <> 'INSERT' AND OLD.environment <> 'server' THEN
            PERFORM pg_notify('svc_action', OLD.app_id || ':' || OLD.id);
          ELSIF TG_OP <> 'DELETE' AND NEW.environment <> 'server' THEN
            PERFORM pg_notify('svc_action', NEW.app_id || ':' || NEW.id);
          END IF;
          RETURN NULL;
        END
      $function$;

CREATE OR REPLACE FUNCTION public.svc_action_edited()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
        DECLARE
          copy action := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
        BEGIN
          PERFORM pg_notify('svc_action_edited',
            copy.app_id || ':' || coalesce(copy.master_id, copy.id) || ':' || (TG_OP = 'DELETE' AND copy.master_id IS NULL));
          RETURN NULL;
        END
      $function$;

CREATE OR REPLACE FUNCTION public.svc_concurrency_key(path text, payload text)
 RETURNS bytea
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
        DECLARE
          value text;
        BEGIN
          IF path IS NULL THEN RETURN ''; END IF;
          value := regexp_replace(payload, '\\u(0000|d[89a-f][0-9a-f]{2})', '\\ufffd', 'gi')::json
                   #>> string_to_array(path, '.');
          RETURN coalesce(sha256(convert_to(value, 'UTF8')), '');
        END
      $function$;

CREATE OR REPLACE FUNCTION public.svc_count_run(run_id bigint, action_id bigint, payload text, concurrency json)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
        DECLARE
          key CONSTANT bytea := svc_concurrency_key(concurrency->>'key', payload);
        BEGIN
          INSERT INTO run_concurrency (run_id, action_id, key, policy) VALUES (run_id, action_id, key, concurrency->>'policy');
          INSERT INTO concurrency_due (action_id, key) VALUES (action_id, key);
          PERFORM pg_notify('svc_limits', '');
        END
      $function$;

CREATE OR REPLACE FUNCTION public.svc_entry_data(data json, payload_at integer, run_id bigint)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
        BEGIN
          IF payload_at IS NULL THEN RETURN data::text; END IF;
          RETURN overlay(data::text PLACING coalesce(
            (SELECT svc_run_payload(run.payload, run.event_id) FROM run WHERE run.id = run_id), '{}')
            FROM payload_at FOR length('null'));
        END
      $function$;

CREATE OR REPLACE FUNCTION public.svc_media_rules(folder bigint)
 RETURNS json
 LANGUAGE sql
 STABLE
AS $function$
        WITH RECURSIVE up AS (
          SELECT parent_id, access_rules, 0 AS step FROM media_folder WHERE id = folder
          UNION ALL
          SELECT above.parent_id, above.access_rules, step + 1
            FROM up JOIN media_folder AS above ON above.id = up.parent_id WHERE up.access_rules IS NULL)
        SELECT access_rules FROM up WHERE access_rules IS NOT NULL ORDER BY step LIMIT 1
      $function$;

CREATE OR REPLACE FUNCTION public.svc_note_scripts()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
        BEGIN
          IF TG_OP = 'UPDATE' THEN
            DELETE FROM kept_script_use WHERE action_id = NEW.id;
          END IF;
          INSERT INTO kept_script_use (sha256, action_id)
            SELECT DISTINCT script[1], NEW.id FROM regexp_matches(NEW.assets::text, '"sha256": ?"([0-9a-f]{64})"', 'g') AS script;
          RETURN NULL;
        END
      $function$;

CREATE OR REPLACE FUNCTION public.svc_run_counted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
        DECLARE
          given json;
        BEGIN
          SELECT concurrency INTO given FROM action WHERE id = NEW.action_id;
          IF given IS NULL THEN
            NEW.waits_for := NULL;
          ELSE
            PERFORM svc_count_run(NEW.id, NEW.action_id, svc_run_payload(NEW.payload, NEW.event_id), given);
          END IF;
          RETURN NEW;
        END
      $function$;

CREATE OR REPLACE FUNCTION public.svc_run_debounced()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
        DECLARE
          given json;
          delay interval;
          longest interval;
          its_sender CONSTANT text := CASE WHEN NEW.trigger = 'log' THEN ''
                                           ELSE coalesce('p' || NEW.person_id, 'c' || NEW.credential_id, '') END;
          first bigint;
        BEGIN
          SELECT debounce INTO given FROM action WHERE id = NEW.action_id;
          -- Whoever wrote the run knew an older state of the action; the next trigger says whether it waits for something else.
          IF given IS NULL THEN
            NEW.waits_for := 'concurrency';
            RETURN NEW;
          END IF;
          delay := (given->>'delayMs')::int * interval '1 millisecond';
          longest := (given->>'maxWaitMs')::int * interval '1 millisecond';
          INSERT INTO debounced_run AS kept (action_id, sender, run_id, first_at, due_at)
          VALUES (NEW.action_id, its_sender, NEW.id, clock_timestamp(), clock_timestamp() + delay)
          ON CONFLICT (action_id, sender) DO UPDATE SET due_at = least(clock_timestamp() + delay, kept.first_at + longest)
          RETURNING kept.run_id INTO first;
          IF first = NEW.id THEN
            PERFORM pg_notify('svc_limits', '');
            RETURN NEW;
          END IF;
          -- Skipped where somebody is just ending it: then this one takes its place.
          PERFORM FROM run WHERE id = first AND state = 'queued' AND waits_for = 'debounce' FOR UPDATE SKIP LOCKED;
          IF FOUND THEN
            UPDATE run SET payload = NEW.payload, event_id = NEW.event_id, person_id = NEW.person_id, credential_id = NEW.credential_id,
                           cause_run_id = NEW.cause_run_id, chain_id = NEW.chain_id, depth = NEW.depth
             WHERE id = first;
            RETURN NULL;
          END IF;
          UPDATE debounced_run SET run_id = NEW.id, first_at = clock_timestamp(), due_at = clock_timestamp() + delay
           WHERE action_id = NEW.action_id AND sender = its_sender;
          RETURN NEW;
        END
      $function$;

CREATE OR REPLACE FUNCTION public.svc_run_payload(payload json, event_id bigint)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
        DECLARE
          iso CONSTANT text := 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"';
          composed text;
        BEGIN
          IF payload IS NOT NULL THEN RETURN payload::text; END IF;
          SELECT json_build_object('trigger', 'log', 'log', json_build_object(
                   'id', event.id, 'userId', event.user_id, 'appId', event.app_id, 'organizationId', app.organization_id,
                   'dataSourceId', event.data_source_id, 'dataSourceEntryId', event.data_source_entry_id,
                   'appNotificationId', event.app_notification_id, 'sessionId', event.session_id,
                   'requestId', event.request_id, 'type', event.type, 'data', event.data, 'dataString', event.data::text,
                   'createdAt', to_char(event.created_at AT TIME ZONE 'UTC', iso),
                   'updatedAt', to_char(event.created_at AT TIME ZONE 'UTC', iso)))::text
            INTO composed FROM log_event AS event JOIN app ON app.id = event.app_id
           WHERE event.id = svc_run_payload.event_id;
          RETURN coalesce(composed, '{}');
        END
      $function$;

CREATE OR REPLACE FUNCTION public.svc_run_waits_no_more()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
        DECLARE
          place record;
        BEGIN
          DELETE FROM debounced_run WHERE run_id = OLD.id;
          DELETE FROM run_concurrency WHERE run_id = OLD.id RETURNING action_id, key, admitted INTO place;
          IF place.admitted THEN
            INSERT INTO concurrency_due (action_id, key) VALUES (place.action_id, place.key);
            PERFORM pg_notify('svc_limits', '');
          END IF;
          RETURN NULL;
        END
      $function$;

CREATE OR REPLACE FUNCTION public.svc_search_words(app_id bigint, given text)
 RETURNS tsvector
 LANGUAGE sql
 IMMUTABLE
AS $function$
    SELECT array_to_tsvector(ARRAY['@' || app_id] || ARRAY(
      SELECT DISTINCT left(word, 64) FROM regexp_split_to_table(lower(regexp_replace(given, '\\(u[0-9a-f]{4}|.)', ' ', 'g') COLLATE "C"), '[\x01-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+') AS word WHERE word <> ''))
  $function$;

CREATE OR REPLACE FUNCTION public.svc_secrets_replaced()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        WITH changed AS (
          UPDATE app SET secrets_version = secrets_version + 1
           WHERE id IN (SELECT app_id FROM replaced WHERE left(key, 1) = '_')
          RETURNING id, secrets_version)
        INSERT INTO replaced_setting (app_id, key, sealed, version)
        SELECT app_id, key, sealed, secrets_version FROM replaced JOIN changed ON changed.id = app_id
         WHERE left(key, 1) = '_' AND NOT not_secret;
        WITH sized AS (
          SELECT ctid AS place, replaced_at,
                 sum(octet_length(sealed)) OVER (PARTITION BY app_id ORDER BY version DESC) AS bytes
            FROM replaced_setting WHERE app_id IN (SELECT app_id FROM replaced)),
        forgotten AS (
          DELETE FROM replaced_setting
           WHERE ctid IN (SELECT place FROM sized
                           WHERE bytes > 262144 OR replaced_at < now() - interval '1 hour')
          RETURNING app_id, version)
        UPDATE app SET secrets_forgotten = greatest(secrets_forgotten, last)
          FROM (SELECT app_id, max(version) AS last FROM forgotten GROUP BY app_id) f WHERE app.id = f.app_id;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.svc_secrets_written()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        UPDATE app SET secrets_version = secrets_version + 1
         WHERE id IN (SELECT app_id FROM written WHERE left(key, 1) = '_');
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.svc_wake(run_id bigint)
 RETURNS void
 LANGUAGE sql
AS $function$
        SELECT pg_notify('svc_queued', '')
      $function$;

CREATE OR REPLACE FUNCTION public.svc_wake_all(run_ids bigint[])
 RETURNS void
 LANGUAGE sql
AS $function$
        SELECT pg_notify('svc_queued', '') WHERE cardinality(run_ids) > 0
      $function$;
