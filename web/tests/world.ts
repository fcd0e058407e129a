import type { FieldError, Problem } from '../src/api/problem';
import type {
  Document,
  Environment,
  Extension,
  FieldOptions,
  Kind,
  Me,
  Page,
  Previewed,
  Price,
  PreviewedChange,
  Requested,
} from '../src/api/schema';
import { secondsOf } from '../src/kinds/lifecycle.ts';
import { violations } from './admission.ts';
import { json, Line, problem, Refusal } from './answers.ts';
import { APIS, exampleOf, kindOf, type Api, type Stage } from './data.ts';
import { goldenOf } from './golden.ts';
import { place, secretOf, staged, whole, type Stored } from './stored.ts';

/** The last part of an event's id: 32 hexadecimal digits, which no page reads. */
export const KNOWN = '0'.repeat(32);

/** The portal's message about a machine without any allowed network. */
const CLOSED = 'SSH is closed: no network is allowed.';

/** Test equipment: a fake portal in memory, based on the repository's schemas and golden files. */
export class World {
  readonly kinds = new Map<Api, Kind>(APIS.map((api) => [api, kindOf(api)]));
  /** Further kinds that the portal lists. */
  readonly others: Kind[] = [];
  readonly environments = new Map<string, Stored>();
  budgets: Record<string, string> = {};
  /** Receives each merge patch. */
  patched: (patch: unknown) => void = () => {};
  keys: string[] = [
    'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMcE1jS2BvFskas8trZu8+v8qhFP45gtKswerSFXYPEP ada@laptop',
  ];
  me: Me | undefined = {
    username: 'oidc:ada@acme.io',
    login: 'ada@acme.io',
    groups: ['oidc:vision'],
    owner: 'u-ada',
    credential: 'session',
    namespaces: ['team-vision', 'team-shop'],
    address: '203.0.113.7',
  };
  /** Every request, as `METHOD path`. */
  readonly asked: string[] = [];
  /** Whether the stream responds. */
  streaming = true;
  /** Whether a proxy holds back the events of streams. */
  buffering = false;
  /** No request gets a response before this is resolved. */
  held: Promise<void> | undefined;
  /** Names that the replica which responds to lists does not know yet. */
  readonly behind = new Set<string>();
  /** Namespaces in which the user may not create environments. */
  readonly closed = new Set<string>();
  /** Namespaces whose environments the user may read but not list. */
  readonly unlisted = new Set<string>();
  /** The price in previews; `undefined` if it is not known. */
  price: Price | undefined = { hourlyUSD: '0.542', stoppedHourlyUSD: '0.011', asOf: '2026-07-20' };
  /** The error of every price in previews, if the budget does not allow it. */
  overBudget: string | undefined;
  /** The time to live of new environments, in seconds. */
  ttl: number | undefined;
  /** Whether the status follows a request at once. */
  follows = false;
  /** Whether the portal knows the kinds of the cluster yet. */
  knows = true;
  private epoch = 'e1';
  private sequence = 0;
  private version = 1000;
  private readonly backlog: Sent[] = [];
  private readonly lines = new Set<Line>();
  private refusals: { method: string; path: RegExp; problem: Refusal; lasts: boolean }[] = [];

  /** Adds an environment. */
  add(
    api: Api,
    over: Partial<Environment> & { stage?: Stage; name: string; namespace: string },
  ): Environment {
    const { stage = 'ready', ...rest } = over;
    const kind = this.kinds.get(api)!;
    const view = staged(api, stage, {
      apiVersion: kind.apiVersion,
      kind: kind.kind,
      plural: kind.plural,
      uid: `uid-${++this.version}`,
      resourceVersion: String(this.version),
      createdAt: new Date().toISOString(),
      labels: {
        owner:
          rest.owner === this.me?.login || !rest.owner ? 'u-ada' : `u-${rest.owner.split('@')[0]}`,
      },
      owner: 'ada@acme.io',
      composition: `${api}-aws`,
      ...rest,
    });
    const spec = structuredClone(exampleOf(api).spec);
    this.environments.set(place(view), { api, view, spec });
    this.tell('added', view);
    return view;
  }

  /** Changes an environment, and sends the change to all streams. */
  change(view: Environment, over: Partial<Environment>): Environment {
    const stored = this.environments.get(place(view))!;
    stored.view = { ...stored.view, resourceVersion: String(++this.version), ...over };
    this.tell('modified', stored.view);
    return stored.view;
  }

  /** Deletes an environment. */
  remove(view: Environment): void {
    const stored = this.environments.get(place(view));
    if (!stored) return;
    this.environments.delete(place(view));
    this.tell('deleted', stored.view);
  }

  /**
   * Responds to the next matching request with an error. With `lasts`, to all matching requests
   * until `relent`.
   */
  refuse(
    method: string,
    path: RegExp,
    {
      status,
      detail,
      errors,
      lasts = false,
    }: Pick<Problem, 'status' | 'detail' | 'errors'> & { lasts?: boolean },
  ): void {
    this.refusals.push({ method, path, problem: new Refusal(status, detail, errors), lasts });
  }

  /** Stops all error responses. */
  relent(): void {
    this.refusals = [];
  }

  /** Ends all streams, with a reset event or without. */
  reset(reason?: string): void {
    for (const line of [...this.lines]) {
      if (reason) line.send('reset', { reason });
      line.close();
    }
  }

  /** Simulates a new process of the portal, so that no stream can resume. */
  restart(): void {
    this.epoch += 'f';
    this.backlog.length = 0;
    this.reset();
  }

  /** Sends a heartbeat on every stream. */
  beat(): void {
    this.lines.forEach((line) => line.send('heartbeat', {}, this.id()));
  }

  /** Sends the events that were held back. From now on, none is held back. */
  flush(): void {
    this.buffering = false;
    this.lines.forEach((line) => line.flush());
  }

  /** The number of open streams. */
  get open(): number {
    return this.lines.size;
  }

  private id(): string {
    return `${this.epoch}-${this.sequence}-${KNOWN}`;
  }

  private tell(type: string, view: Environment): void {
    if (this.unlisted.has(view.namespace)) return;
    this.sequence += 1;
    const sent = { type, view, sequence: this.sequence, id: this.id() };
    this.backlog.push(sent);
    this.lines.forEach((line) => line.send(type, view, sent.id));
  }

  /** Responds to a request like the portal. */
  readonly fetch = async (request: Request): Promise<Response> => {
    const url = new URL(request.url);
    const path = decodeURIComponent(url.pathname);
    this.asked.push(`${request.method} ${path}`);
    const body =
      request.method === 'GET' || request.method === 'DELETE'
        ? undefined
        : ((await request.json().catch(() => undefined)) as unknown);
    await this.held;
    try {
      return this.answer(request, url, path, body);
    } catch (thrown) {
      if (!(thrown instanceof Refusal)) throw thrown;
      return problem(thrown, path, `test-${this.asked.length}`);
    }
  };

  private answer(request: Request, url: URL, path: string, body: unknown): Response {
    const out = path === '/auth/sign-out';
    if (!this.me && !out) throw new Refusal(401, 'Sign in, or send a token of Kubernetes.');
    const refusal = this.refusals.find(
      (one) => one.method === request.method && one.path.test(path),
    );
    if (refusal) {
      const { problem, lasts } = refusal;
      if (!lasts) this.refusals = this.refusals.filter((one) => one !== refusal);
      // The portal deletes the browser's cookie even if it cannot notify its other replicas.
      if (out && problem.status === 503) this.me = undefined;
      throw problem;
    }
    if (out) return this.signOut();
    return this.route(request, url, path, body);
  }

  /** Ends every stream, and then responds. */
  private signOut(): Response {
    if (this.me?.credential === 'kubeconfig')
      throw new Refusal(404, 'This portal has no sign-in: it acts as the user of the kubeconfig.');
    this.me = undefined;
    this.reset('signed-out');
    return new Response(null, { status: 204 });
  }

  private route(request: Request, url: URL, path: string, body: unknown): Response {
    const one =
      /^\/api\/v1\/environments\/([^/]+)\/([^/]+)\/([^/]+)(\/(?:connection|preview|extend|keep|stop|start))?$/.exec(
        path,
      );
    if (one) return this.one(request, url, one, body as Document);
    const kind = /^\/api\/v1\/kinds\/([^/]+)$/.exec(path)?.[1];
    const namespace = url.searchParams.get('namespace') ?? undefined;
    if (kind) return json({ ...this.shown(this.called(kind), namespace), options: this.options });
    switch (`${request.method} ${path}`) {
      case 'GET /api/v1/me':
        return json(this.me);
      case 'GET /api/v1/kinds':
        return json(
          this.knows
            ? [...this.kinds.values(), ...this.others].map((one) => this.shown(one, namespace))
            : [],
        );
      case 'GET /api/v1/environments':
        return json(this.page(url.searchParams));
      case 'POST /api/v1/environments':
        return this.create(body as Document, url.searchParams.get('dryRun') === 'true');
      case 'POST /api/v1/preview':
        return this.preview(body as Document);
      case 'GET /api/v1/budgets':
        return json({ hourlyUSD: this.budgets });
      case 'GET /api/v1/keys':
        return json({ keys: this.keys });
      case 'PUT /api/v1/keys':
        return this.putKeys((body as { keys: string[] }).keys);
      case 'GET /api/v1/watch':
        return this.watch(request.headers.get('last-event-id') ?? undefined, request.signal);
      default:
        throw new Refusal(404, 'Page not found.');
    }
  }

  /** The namespace of a new environment: the chosen one, or the user's first one that allows it. */
  private goesTo(chosen: string | undefined): string | undefined {
    return (chosen === undefined ? (this.me?.namespaces ?? []) : [chosen]).find(
      (one) => !this.closed.has(one),
    );
  }

  private shown(kind: Kind, chosen: string | undefined): Kind {
    const namespace = this.goesTo(chosen);
    const isUnknown = chosen === undefined && this.me?.namespaces.length === 0;
    return {
      ...kind,
      mayCreate: isUnknown ? undefined : namespace !== undefined,
      ...((namespace ?? chosen) !== undefined && { namespace: namespace ?? chosen }),
    };
  }

  private called(text: string): Kind {
    if (!this.knows)
      throw new Refusal(
        503,
        "The portal is still loading the cluster's kinds. Try again in a moment.",
      );
    const found = [...this.kinds.values()].find(
      (kind) =>
        text.toLowerCase() === kind.kind.toLowerCase() ||
        text === kind.plural ||
        text === resourceOf(kind),
    );
    if (!found) throw new Refusal(404, `${text}: there is no such kind here`);
    return found;
  }

  /** The keys of environments that the user may list, sorted. */
  private listed(): string[] {
    return [...this.environments.keys()]
      .filter((key) => !this.unlisted.has(this.environments.get(key)!.view.namespace))
      .sort();
  }

  /** A page of the list, sorted by kind, namespace and name. */
  private page(query: URLSearchParams): Page {
    const limit = Number(query.get('limit') ?? 100);
    if (!(limit >= 1 && limit <= 500))
      throw Refusal.field('limit', `found ${limit}; allowed: 1 to 500`);
    const after = query.get('continue') ?? '';
    const all = this.listed().filter(
      (key) => key > after && !this.behind.has(this.environments.get(key)!.view.name),
    );
    const keys = all.slice(0, limit);
    return {
      items: keys.map((key) => this.environments.get(key)!.view),
      ...(all.length > limit && { continue: keys.at(-1)! }),
    };
  }

  private one(
    request: Request,
    url: URL,
    [, namespace, kindText, name, view]: RegExpExecArray,
    body: Document,
  ): Response {
    const kind = this.called(kindText ?? '');
    const stored = this.environments.get(
      place({ kind: kind.kind, namespace: namespace!, name: name! }),
    );
    if (!stored) throw new Refusal(404, `${resourceOf(kind)} "${name}" not found`);
    if (view === '/preview') return this.previewChange(kind, stored, body);
    if (view === '/extend') return this.extend(stored, body as unknown as Extension);
    if (view === '/keep') return this.keep(stored);
    if (view === '/stop' || view === '/start') return this.turn(stored, view);
    if (view) return json({ secret: secretOf(stored), values: this.secrets(stored) });
    if (request.method === 'DELETE') return this.delete(kind, stored, url.searchParams.get('uid'));
    if (request.method === 'PUT') this.replace(kind, stored, body);
    if (request.method === 'PATCH') this.patched(body);
    return json(whole(stored));
  }

  /** Removes the time to live, as the function shows it later. */
  private keep(stored: Stored): Response {
    stored.spec = { ...stored.spec, lifecycle: { ttl: 'never' } };
    const { expiresAt: _, deletesAt: __, ...lifecycle } = stored.view.lifecycle ?? {};
    const environment = this.change(stored.view, { lifecycle, expiring: undefined });
    const requested: Requested = { environment, changed: true, starts: false };
    return json(requested);
  }

  /** Extends the time to live, up to the maximum, as the function shows it later. */
  private extend({ view }: Stored, extension: Extension): Response {
    const { lifecycle } = view;
    if (!lifecycle?.expiresAt)
      throw new Refusal(
        422,
        `${view.kind} ${view.namespace}/${view.name} has no time to live, so there is nothing to renew. Set spec.lifecycle.ttl in the claim instead`,
        [
          {
            field: 'spec.lifecycle.ttl',
            message: 'found no time to live; allowed: a duration, for example 8h',
          },
        ],
      );
    const most = secondsOf(lifecycle.maximum);
    const asked = extension.maximum ? most : secondsOf(extension.for);
    if (asked === undefined)
      throw Refusal.field('for', `found ${JSON.stringify(extension.for)}; allowed: a duration`);
    const isCapped = most !== undefined && asked > most;
    const expiresAt = new Date(Date.now() + Math.min(asked, most ?? asked) * 1000).toISOString();
    const environment = this.change(view, {
      lifecycle: { ...lifecycle, expiresAt },
      expiring: undefined,
    });
    const requested: Requested = {
      environment,
      changed: true,
      starts: false,
      expiresAt,
      cappedBy: isCapped ? lifecycle.maximum : undefined,
    };
    return json(requested);
  }

  /** Stops or starts an environment. Its status follows. */
  private turn({ view }: Stored, to: '/stop' | '/start'): Response {
    if (to === '/stop' && view.cannotStop)
      throw new Refusal(
        422,
        `${view.kind} ${view.namespace}/${view.name} cannot be stopped, because ${view.cannotStop}`,
        [{ field: 'spec.lifecycle.power', message: 'found Stopped; allowed: Running' }],
      );
    const power = to === '/stop' ? 'Stopping' : 'Starting';
    const environment = this.change(
      view,
      this.follows ? { power, phase: power, ready: false } : {},
    );
    const requested: Requested = { environment, changed: true, starts: to === '/start' };
    return json(requested);
  }

  private secrets({ view, spec }: Stored): Record<string, string> {
    const secret = secretOf({ view, spec });
    if (!secret)
      throw new Refusal(
        404,
        'This environment has no Secret for connection details. Set spec.writeConnectionSecretToRef.name.',
      );
    if (view.parts.every(({ ready }) => !ready))
      throw new Refusal(404, `There is no Secret ${secret} with connection details yet.`);
    return {
      host: '203.0.113.24',
      username: 'developer',
      password: 'correct-horse-battery',
      kubeconfig: 'apiVersion: v1\nkind: Config\nclusters: []\n',
    };
  }

  private delete(kind: Kind, { view }: Stored, uid: string | null): Response {
    if (uid && uid !== view.uid) {
      throw new Refusal(
        409,
        `Operation cannot be fulfilled on ${resourceOf(kind)} "${view.name}": the UID in the precondition (${uid}) does not match the UID in record (${view.uid}). The object might have been deleted and then recreated`,
      );
    }
    if (!view.deletedAt)
      this.change(view, {
        deletedAt: new Date().toISOString(),
        phase: 'Deleting',
        message: 'is being deleted',
        progress: view.progress.replace(/^\d+/, '0'),
        ready: false,
      });
    return new Response(null, { status: 202 });
  }

  private replace(kind: Kind, stored: Stored, body: Document): void {
    const { resourceVersion } = body.metadata as { resourceVersion?: string };
    if (!resourceVersion)
      throw Refusal.field(
        'metadata.resourceVersion',
        'required: the version that you have read, so that no other change is lost',
      );
    if (resourceVersion !== stored.view.resourceVersion) {
      throw new Refusal(
        409,
        `Operation cannot be fulfilled on ${resourceOf(kind)} "${stored.view.name}": the object has been modified; please apply your changes to the latest version and try again`,
      );
    }
    this.admit(kind, body);
    stored.spec = body.spec;
    this.change(stored.view, { ready: false });
  }

  private create(document: Document, dryRun: boolean): Response {
    const { api, kind, name, namespace } = this.draft(document);
    this.admit(kind, document);
    if (this.environments.has(place({ kind: kind.kind, namespace, name })))
      throw new Refusal(409, `${resourceOf(kind)} "${name}" already exists`, [], 'AlreadyExists');
    if (dryRun) return json({});
    const view = this.add(api, { stage: 'nothing', name, namespace, owner: this.me!.login });
    const stored = this.environments.get(place(view))!;
    stored.spec = document.spec;
    return json(whole(stored), 201);
  }

  /** The parts of a document, checked without its schema. */
  private draft({ kind: called, metadata }: Document): {
    api: Api;
    kind: Kind;
    name: string;
    namespace: string;
  } {
    const [api, kind] = [...this.kinds].find(([, one]) => one.kind === called) ?? [];
    if (!api || !kind)
      throw Refusal.field(
        'kind',
        `found ${called}; allowed: ${[...this.kinds.values()].map((one) => one.kind).join(', ')}`,
      );
    const { name, namespace: chosen } = metadata as { name?: string; namespace?: string };
    if (name === undefined) throw Refusal.field('metadata.name', 'required');
    if (!/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(name))
      throw Refusal.field(
        'metadata.name',
        `found ${JSON.stringify(name)}; allowed: lowercase letters, digits, hyphens and dots`,
      );
    if (name.length > 63)
      throw Refusal.field('metadata.name', `found ${name.length} characters; allowed: at most 63`);
    const namespace = chosen ?? this.goesTo(undefined);
    if (namespace === undefined)
      throw new Refusal(
        403,
        `You may not create ${called} where yours would go (${this.me!.namespaces.join(', ') || 'no namespace'}): name a namespace of yours.`,
      );
    return { api, kind, name, namespace };
  }

  /** Throws the errors of the API server, in its words. */
  private admit(kind: Kind, document: Document): void {
    const { name, namespace = '' } = document.metadata as { name: string; namespace?: string };
    if (this.closed.has(namespace))
      throw new Refusal(
        403,
        `${resourceOf(kind)} is forbidden: User "${this.me!.username}" cannot create resource "${kind.plural}" in API group "platform.acme.io" in the namespace "${namespace}"`,
      );
    const errors = violations(kind, document);
    if (errors.length > 0)
      throw new Refusal(
        422,
        `${kind.kind}.platform.acme.io "${name}" is invalid: ${errors.map(({ field, message }) => `${field}: ${message}`).join(', ')}`,
        errors,
      );
  }

  private preview(document: Document): Response {
    const { api, kind, name, namespace } = this.draft(document);
    if (this.closed.has(namespace))
      throw new Refusal(403, `You may not create ${kind.kind} in namespace ${namespace}.`);
    const errors = violations(kind, document);
    if (errors.length > 0)
      throw new Refusal(
        422,
        `${kind.kind} ${name} is rejected: ${errors.map(({ field, message }) => `${field}: ${message}`).join('; ')}`,
        errors,
      );
    const golden = goldenOf(api, 'nothing');
    const previewed: Previewed = {
      composition: `${api}-aws`,
      parts: golden.parts,
      resources: golden.resources,
      notes: this.closedToSsh(api, document) ? [CLOSED] : [],
      price: this.price,
      overBudget: this.excess(),
      expiresAt:
        this.ttl === undefined ? undefined : new Date(Date.now() + this.ttl * 1000).toISOString(),
      sshClosed: this.closedToSsh(api, document),
    };
    return json(previewed);
  }

  private excess(): FieldError | undefined {
    return this.overBudget ? { field: 'metadata.namespace', message: this.overBudget } : undefined;
  }

  /** The known values of fields. */
  options: FieldOptions[] = [];

  /** Values that the function rejects and the cluster accepts. */
  readonly unknownTypes = new Set<string>();

  private previewChange(kind: Kind, { api, spec }: Stored, document: Document): Response {
    const errors = violations(kind, document);
    const { instanceType } = (document.spec['parameters'] ?? {}) as { instanceType?: string };
    if (this.unknownTypes.has(instanceType ?? ''))
      errors.push({
        field: 'spec.parameters.instanceType',
        message: `found "${instanceType}"; allowed: a GPU machine`,
      });
    if (errors.length > 0)
      throw new Refusal(
        422,
        errors.map(({ field, message }) => `${field}: ${message}`).join('; '),
        errors,
      );
    const before = (spec['parameters'] ?? {}) as { instanceType?: string };
    const isOther = instanceType !== undefined && instanceType !== before.instanceType;
    const field = {
      path: 'spec.forProvider.instanceType',
      before: before.instanceType,
      after: instanceType,
    };
    const changed: PreviewedChange = {
      composition: `${api}-aws`,
      changes: isOther
        ? [{ slot: 'instance', kind: 'Instance', action: 'change', fields: [field] }]
        : [],
      notes: [],
      price: this.price,
      overBudget: this.excess(),
      sshClosed: false,
    };
    return json(changed);
  }

  private closedToSsh(api: Api, document: Document): boolean {
    const { allowedCidrs = [] } = (document.spec['parameters'] ?? {}) as {
      allowedCidrs?: string[];
    };
    return api === 'gpu-workspace' && allowedCidrs.length === 0;
  }

  private putKeys(sent: string[]): Response {
    if (sent.length > 20) throw Refusal.field('keys', `found ${sent.length}; allowed: at most 20`);
    const keys = sent.map((line) => line.trim());
    const index = keys.findIndex(
      (key) => !/^(ssh-ed25519|ssh-rsa|ecdsa-\S+|sk-\S+) \S{16,}/.test(key),
    );
    if (index >= 0)
      throw Refusal.field(
        `keys[${index}]`,
        `found "${keys[index]!.split(' ')[0]!}", which does not start with a known key type; allowed: one line as in ~/.ssh/id_ed25519.pub`,
      );
    this.keys = [...new Set(keys)];
    return json({ keys: this.keys });
  }

  private watch(last: string | undefined, signal: AbortSignal): Response {
    if (!this.streaming)
      throw new Refusal(429, 'You have 128 open streams. Close some, and try again.');
    const [epoch, sequence] = last?.split('-') ?? [];
    let line: Line | undefined;
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        line = new Line(controller, () => this.lines.delete(line!), this.buffering);
        if (epoch === this.epoch) {
          this.backlog
            .filter((sent) => sent.sequence > Number(sequence))
            .forEach((sent) => line!.send(sent.type, sent.view, sent.id));
        } else {
          line.send('snapshot', { total: this.listed().length }, undefined, 1000);
          this.listed().forEach((key) => line!.send('added', this.environments.get(key)!.view));
        }
        line.send('synced', {}, this.id());
        this.lines.add(line);
      },
      cancel: () => void this.lines.delete(line!),
    });
    signal.addEventListener('abort', () => line?.close());
    return new Response(stream, { headers: { 'content-type': 'text/event-stream' } });
  }
}

interface Sent {
  type: string;
  view: Environment;
  sequence: number;
  id: string;
}

/** The name of a kind's resource in messages of Kubernetes. */
function resourceOf({ plural, apiVersion }: Kind): string {
  return `${plural}.${apiVersion.split('/')[0]}`;
}
